// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"go.uber.org/atomic"
	"k8s.io/client-go/rest"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/internal/reading"
	"github.com/pilotkit/pilotkit/configstore/memory"
	"github.com/pilotkit/pilotkit/internal/options"
)

// reads contains the read methods of a Cache.
type reads = reading.Cache

// Cache is a ConfigStoreCache of an API server's objects. Create it with New. It also implements
// configstore.Subscriber, Watcher, Drainer and Flusher.
//
// HasSynced returns true once all kinds of the API server were listed and the handlers have
// processed them. It waits for a kind that is forbidden until it may be listed, unless the kind is
// in Options.Optional: see Errors.
//
// Revision counts the changes of this cache and is unrelated to the resource versions of objects.
// Drain and Flush cover the objects that were read from the API server before the call: to wait for
// a write, call Await first.
type Cache struct {
	reads
	opts   Options
	client *rest.RESTClient
	// published is the state that readers see and that handlers follow. Only the kinds write to it.
	published *memory.Controller
	kinds     []*kind // in the order of the schemas
	// followed is set once Run has started to read. The second call of published.Run panics.
	followed atomic.Bool
	// ended is set when Run has returned.
	ended atomic.Bool

	mu sync.Mutex
	// namespaces is Options.Namespaces, or the argument of the last SelectNamespaces.
	namespaces func(string) bool
	// crdsListed is set once the CRDs have been listed.
	crdsListed bool
	// crdErr is the current failure to list or watch the CRDs.
	crdErr failure
	// crdsForbidden is set while the server forbids listing the CRDs.
	crdsForbidden bool
	// judged is the function that onVerdict has set.
	judged func(configstore.ConfigKey)
}

var (
	_ configstore.ConfigStoreCache = (*Cache)(nil)
	_ configstore.Subscriber       = (*Cache)(nil)
	_ configstore.Watcher          = (*Cache)(nil)
	_ configstore.Drainer          = (*Cache)(nil)
	_ configstore.Flusher          = (*Cache)(nil)
)

// New returns a cache of the API server's objects of the kinds of schemas. It does not connect: Run
// does, and each write. New copies config and returns an error if it is unusable. Requests are rate
// limited only if config says so.
func New(config *rest.Config, schemas configstore.Schemas, opts ...Options) (*Cache, error) {
	o := options.One("kube.New", opts).withDefaults()
	client, err := newClient(config, schemas)
	if err != nil {
		return nil, fmt.Errorf("kube.New: %w", err)
	}
	c := &Cache{
		opts:   o,
		client: client,
		published: memory.NewController(memory.Make(schemas, memory.Options{
			Mirror: true, SkipValidation: true, HistoryLimit: o.HistoryLimit,
		}), memory.ControllerOptions{Logger: o.Logger}),
		namespaces: o.Namespaces,
	}
	c.reads = c.published
	for _, schema := range schemas.All() {
		c.kinds = append(c.kinds, newKind(c, schema))
	}
	c.published.RegisterHasSyncedHandler(c.listed)
	return c, nil
}

// kind returns the kind for any of its versions, or nil.
func (c *Cache) kind(gvk configstore.GroupVersionKind) *kind {
	if i, ok := c.published.Schemas().Position(&gvk); ok {
		return c.kinds[i]
	}
	return nil
}

// Snapshot returns the current state of all kinds.
func (c *Cache) Snapshot() *memory.Snapshot { return c.published.Snapshot() }

// Run reads from the API server and delivers events until stop is closed. While the server cannot
// be reached, Run retries and the cache keeps its state. All goroutines that Run started have ended
// when it returns. A second call panics.
func (c *Cache) Run(stop <-chan struct{}) {
	ctx, cancel := context.WithCancel(context.Background()) //nolint:forbidigo // The life of Run.
	var following sync.WaitGroup
	if !c.followed.Swap(true) {
		following.Go(func() { c.follow(ctx) })
	}
	defer following.Wait()
	defer cancel()
	c.published.Run(stop)
	c.ended.Store(true)
}

// listed reports whether the initial state is published.
func (c *Cache) listed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.crdsListed && !c.crdsForbidden {
		return false
	}
	for _, k := range c.kinds {
		if slices.ContainsFunc(k.scopes, func(s *scope) bool { return !s.resolved }) {
			return false
		}
	}
	return true
}

// SelectNamespaces replaces Options.Namespaces; nil selects all namespaces. Handlers see deletes
// for the objects of namespaces that are deselected, and adds for those in namespaces that become
// selected. The kinds are listed again for this, so the change takes effect soon after the call,
// not before it returns. Call it whenever the results of the current function would change.
func (c *Cache) SelectNamespaces(selected func(namespace string) bool) {
	c.mu.Lock()
	c.namespaces = selected
	c.mu.Unlock()
	for _, k := range c.kinds {
		k.relist()
	}
}
