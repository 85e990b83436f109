// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/pilotkit/pilotkit/configstore"
)

// kind follows the objects of one kind.
type kind struct {
	cache  *Cache
	schema configstore.Schema
	// versions are those under which the kind may be served, the best one first.
	versions []string

	// following is what runs, or nil. Only follow and what it calls use it.
	following *following

	// What follows is protected by the cache's mu.

	// served is the index in versions of the one that the server is asked for, or
	// absent.
	served int
	// resolved is set when the objects that existed at first are published, or
	// there were none because the kind is absent or forbidden. It stays.
	resolved bool
	// err is why the server does not give the objects.
	err failure
	// verdicts holds what is wrong with objects, or questionable about them.
	verdicts map[objectKey]*verdict
	// restart is closed to have the kind listed again; it is nil while nothing
	// follows.
	restart chan struct{}
}

// absent is what kind.served is if the server has no such kind.
const absent = -1

// objectKey is an object's key within its kind.
type objectKey struct{ namespace, name string }

// following is one period in which a kind is served under one version.
type following struct {
	crdUID  string
	version int
	cancel  context.CancelFunc
	done    sync.WaitGroup
}

func newKind(c *Cache, schema configstore.Schema) *kind {
	return &kind{cache: c, schema: schema, versions: versions(&schema), verdicts: map[objectKey]*verdict{}}
}

func (k *kind) gvk() configstore.GroupVersionKind { return k.schema.GroupVersionKind }

// crdName is the name of the kind's CustomResourceDefinition.
func (k *kind) crdName() string { return k.schema.Plural + "." + k.gvk().Group }

// path returns the path of a namespace's objects, or of all for "", under a
// version.
func (k *kind) path(version int, namespace string) []string {
	path := []string{"apis", k.gvk().Group, k.versions[version]}
	if namespace != "" {
		path = append(path, "namespaces", namespace)
	}
	return append(path, k.schema.Plural)
}

// version returns the index of the version to use in requests.
func (k *kind) version() int {
	k.cache.mu.Lock()
	defer k.cache.mu.Unlock()
	return max(k.served, 0)
}

// report takes the outcome of an attempt to list or watch.
func (k *kind) report(err error) {
	c := k.cache
	c.mu.Lock()
	switch {
	case err == nil:
	case apierrors.IsForbidden(err):
		// It may take forever until it is allowed, and the other kinds work.
		k.resolved = true
	case c.crdsForbidden && isNoSuchPath(err):
		// Nobody else says which versions there are.
		k.served++
		if k.served == len(k.versions) {
			k.served, k.resolved = 0, true
		}
	}
	noted := k.err.replace(err)
	c.mu.Unlock()
	if noted {
		c.logKind(k.gvk(), err)
	}
}

// published is called when a list is in the cache.
func (k *kind) published() {
	k.cache.mu.Lock()
	defer k.cache.mu.Unlock()
	k.resolved = true
}

// relist has the objects listed again, if they are being followed.
func (k *kind) relist() {
	k.cache.mu.Lock()
	defer k.cache.mu.Unlock()
	if k.restart != nil {
		close(k.restart)
		k.restart = make(chan struct{})
	}
}
