// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"slices"
	"sync"

	"github.com/pilotkit/pilotkit/configstore"
)

// kind follows the objects of one kind.
type kind struct {
	cache  *Cache
	schema configstore.Schema
	// versions are those under which the kind may be served, the best one first.
	versions []string
	scopes   []*scope // at least one
	// optional is whether Options.Optional names the kind.
	optional bool

	// following is what runs, or nil. Only follow and what it calls use it.
	following *following

	// What follows is protected by the cache's mu.

	// verdicts holds what is wrong with objects, or questionable about them.
	verdicts map[objectKey]*verdict
	// restart is closed to have the kind listed again; it is nil while nothing
	// follows.
	restart chan struct{}
}

// absent is what scope.served is if the server has no such kind.
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
	k := &kind{cache: c, schema: schema, versions: versions(&schema), verdicts: map[objectKey]*verdict{}}
	k.scopes = scopesOf(k)
	k.optional = slices.ContainsFunc(c.opts.Optional, func(o configstore.GroupVersionKind) bool {
		named, ok := c.Schemas().Find(o)
		return ok && named.GroupVersionKind == k.gvk()
	})
	return k
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

// version returns the index of the version to use in writes.
func (k *kind) version() int { return k.scopes[0].version() }

// relist has the objects listed again, if they are being followed.
func (k *kind) relist() {
	k.cache.mu.Lock()
	defer k.cache.mu.Unlock()
	if k.restart != nil {
		close(k.restart)
		k.restart = make(chan struct{})
	}
}
