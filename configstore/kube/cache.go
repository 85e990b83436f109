// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"sync"

	"go.uber.org/atomic"
	"k8s.io/client-go/rest"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/memory"
	"github.com/pilotkit/pilotkit/internal/kindindex"
	"github.com/pilotkit/pilotkit/internal/options"
)

// Cache is a ConfigStoreCache over an API server. Create it with New. Beyond the
// interface it is a configstore.Subscriber, BatchSubscriber, Watcher, Drainer and
// Flusher.
type Cache struct {
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

// Schemas implements ConfigStore.
func (c *Cache) Schemas() configstore.Schemas { return c.published.Schemas() }

// Get implements ConfigStore.
func (c *Cache) Get(kind configstore.GroupVersionKind, name, namespace string) *configstore.Config {
	return c.published.Get(kind, name, namespace)
}

// List implements ConfigStore.
func (c *Cache) List(kind configstore.GroupVersionKind, namespace string) []*configstore.Config {
	return c.published.List(kind, namespace)
}

// Delivering implements configstore.Deliverer.
func (c *Cache) Delivering() bool { return c.published.Delivering() }

// Snapshot returns the present state of all kinds.
func (c *Cache) Snapshot() *memory.Snapshot { return c.published.Snapshot() }

// RegisterEventHandler implements ConfigStoreCache.
func (c *Cache) RegisterEventHandler(kind configstore.GroupVersionKind, handler configstore.EventHandler) {
	c.published.RegisterEventHandler(kind, handler)
}

// Subscribe implements configstore.Subscriber.
func (c *Cache) Subscribe(kind configstore.GroupVersionKind, handler configstore.EventHandler) (cancel func()) {
	return c.published.Subscribe(kind, handler)
}

// SubscribeBatch implements configstore.BatchSubscriber.
func (c *Cache) SubscribeBatch(kinds []configstore.GroupVersionKind, handler configstore.BatchHandler) (cancel func()) {
	return c.published.SubscribeBatch(kinds, handler)
}

// ListAndSubscribe implements configstore.ListSubscriber.
func (c *Cache) ListAndSubscribe(
	kinds []configstore.GroupVersionKind, handler configstore.BatchHandler,
) (objects []*configstore.Config, cancel func()) {
	return c.published.ListAndSubscribe(kinds, handler)
}

// Revision implements configstore.Watcher. It counts the changes of this cache and
// has nothing to do with the resource versions of objects.
func (c *Cache) Revision() uint64 { return c.published.Revision() }

// Watch implements configstore.Watcher.
func (c *Cache) Watch(ctx context.Context, from uint64) iter.Seq2[configstore.Change, error] {
	return c.published.Watch(ctx, from)
}

// HasSynced implements ConfigStoreCache. It is true once all kinds that the API
// server has were listed, and the handlers have processed it. A kind that may not be
// listed is waited for until it may, unless it is in Options.Optional: see Errors.
func (c *Cache) HasSynced() bool { return c.published.HasSynced() }

// Drain implements configstore.Drainer, for what was read from the API server.
func (c *Cache) Drain() { c.published.Drain() }

// Flush implements configstore.Flusher, for what was read from the API server when
// it is called: to wait for a write too, call Await before.
func (c *Cache) Flush(ctx context.Context) error { return c.published.Flush(ctx) }

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
