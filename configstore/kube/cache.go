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
	"github.com/pilotkit/pilotkit/internal/kindindex"
	"github.com/pilotkit/pilotkit/internal/options"
)

// reads is what readers call.
type reads = reading.Cache

// Cache is a ConfigStoreCache over an API server. Create it with New. Beyond the
// interface it is a configstore.Subscriber, BatchSubscriber, ListSubscriber, Watcher,
// Drainer, Flusher and Deliverer.
//
// HasSynced is true once all kinds that the API server has were listed, and the handlers
// have processed it. A kind that may not be listed is waited for until it may, unless it
// is in Options.Optional: see Errors.
//
// Revision counts the changes of this cache and has nothing to do with the resource
// versions of objects. Drain and Flush are for what was read from the API server before
// the call: to wait for a write too, call Await before.
type Cache struct {
	reads
	opts   Options
	client *rest.RESTClient
	// published is what readers see and handlers are notified of. Only the kinds
	// write to it.
	published *memory.Controller
	kinds     []*kind         // in the order of the schemas
	index     kindindex.Index // of kinds
	// followed is set once Run has started to read; it panics in a second call.
	followed atomic.Bool

	mu sync.Mutex
	// namespaces is Options.Namespaces, or what replaced it.
	namespaces func(string) bool
	// crdsListed is set once it is known which CRDs there are.
	crdsListed bool
	// crdErr is why that is not known, or not known any more.
	crdErr failure
	// crdsForbidden is set while the server does not let the CRDs be read.
	crdsForbidden bool
	// judged is what onVerdict has set.
	judged func(configstore.ConfigKey)
}

var (
	_ configstore.ConfigStoreCache = (*Cache)(nil)
	_ configstore.Subscriber       = (*Cache)(nil)
	_ configstore.BatchSubscriber  = (*Cache)(nil)
	_ configstore.ListSubscriber   = (*Cache)(nil)
	_ configstore.Watcher          = (*Cache)(nil)
	_ configstore.Drainer          = (*Cache)(nil)
	_ configstore.Flusher          = (*Cache)(nil)
	_ configstore.Deliverer        = (*Cache)(nil)
)

// New returns the cache of an API server's objects of the kinds of schemas. It
// connects to nothing yet: Run does, and each write. The error is that of an
// unusable config, which New copies. Requests are limited only if config says so.
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
	for i, schema := range schemas.All() {
		c.index.Add(i, kindindex.Name(schema.GroupVersionKind), schema.Aliases...)
		c.kinds = append(c.kinds, newKind(c, schema))
	}
	c.published.RegisterHasSyncedHandler(c.listed)
	return c, nil
}

// kind returns a kind, named by any version, or nil.
func (c *Cache) kind(gvk configstore.GroupVersionKind) *kind {
	if i, ok := c.index.Find((*kindindex.Name)(&gvk)); ok {
		return c.kinds[i]
	}
	return nil
}

// Snapshot returns the present state of all kinds.
func (c *Cache) Snapshot() *memory.Snapshot { return c.published.Snapshot() }

// Run reads from the API server and delivers events, until stop is closed. While
// the server cannot be reached it goes on trying, and the state stays. When it
// returns, all that it started has ended. A second call panics.
func (c *Cache) Run(stop <-chan struct{}) {
	ctx, cancel := context.WithCancel(context.Background()) //nolint:forbidigo // The life of Run.
	var following sync.WaitGroup
	if !c.followed.Swap(true) {
		following.Go(func() { c.follow(ctx) })
	}
	defer following.Wait()
	defer cancel()
	c.published.Run(stop)
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

// SelectNamespaces replaces Options.Namespaces; nil selects all. Objects of
// namespaces that are not selected any more leave the cache, and those of
// namespaces that now are enter it, as deletes and adds for handlers: the kinds are
// listed again for it, so that it happens soon, not before the call returns. Call
// it whenever the answers of the function that is in use would change.
func (c *Cache) SelectNamespaces(selected func(namespace string) bool) {
	c.mu.Lock()
	c.namespaces = selected
	c.mu.Unlock()
	for _, k := range c.kinds {
		k.relist()
	}
}
