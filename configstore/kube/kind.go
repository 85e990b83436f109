// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"slices"
	"sync"

	"github.com/pilotkit/pilotkit/configstore"
)

// kind watches the objects of one kind.
type kind struct {
	cache  *Cache
	schema configstore.Schema
	// versions are the versions under which the kind may be served, in order of preference.
	versions []string
	scopes   []*scope // at least one
	// optional is set if Options.Optional contains the kind.
	optional bool

	// following is the running watch, or nil. Only follow and the functions that it calls use it.
	following *following

	// The fields below are protected by the cache's mu.

	// verdicts contains the errors and warnings of objects.
	verdicts map[objectKey]*verdict
	// restart is closed to list the kind again; it is nil while no watch runs.
	restart chan struct{}
}

// absent is the value of scope.served if the server does not have the kind.
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

// path returns the path of a namespace's objects, or of all objects for "", under a version.
func (k *kind) path(version int, namespace string) []string {
	path := []string{"apis", k.gvk().Group, k.versions[version]}
	if namespace != "" {
		path = append(path, "namespaces", namespace)
	}
	return append(path, k.schema.Plural)
}

// version returns the index of the version to use in writes.
func (k *kind) version() int { return k.scopes[0].version() }

// relist lists the objects again if the kind is being watched.
func (k *kind) relist() {
	k.cache.mu.Lock()
	defer k.cache.mu.Unlock()
	if k.restart != nil {
		close(k.restart)
		k.restart = make(chan struct{})
	}
}
