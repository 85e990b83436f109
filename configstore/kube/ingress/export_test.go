// SPDX-License-Identifier: Apache-2.0

package ingress

import (
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/internal/derived"
	"github.com/pilotkit/pilotkit/configstore/memory"
)

// NewOffline returns a cache that follows nothing.
func NewOffline() *Cache {
	client, err := kubernetes.NewForConfig(&rest.Config{})
	if err != nil {
		panic(err)
	}
	c := newCache(client, CacheOptions{})
	c.sources, c.ready = nil, true
	return c
}

// NewReadSide returns a cache of other kinds without sources, and the controller that its readers
// see.
func NewReadSide(schemas configstore.Schemas) (*Cache, *memory.Controller) {
	c := NewOffline()
	published := memory.NewController(memory.Make(schemas))
	published.RegisterHasSyncedHandler(c.listed)
	c.published = derived.NewPublished(published, c.opts.Logger)
	c.readOnly = derived.Of(c.published)
	return c, published
}

// Follow converts and publishes changes, as a cache does with what it reads of a cluster.
func (c *Cache) Follow(changes ...Change) { c.apply(changes...) }
