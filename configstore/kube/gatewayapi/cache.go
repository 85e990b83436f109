// SPDX-License-Identifier: Apache-2.0

package gatewayapi

import (
	"context"
	"log/slog"
	"slices"
	"sync"

	"go.uber.org/atomic"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/internal/derived"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/internal/options"
)

// CacheOptions are the options of a Cache. The zero value works.
type CacheOptions struct {
	Options
	// Infrastructure runs the proxies of Gateways, and says which addresses they have: it sets
	// Options.Provided. Nil: see there.
	Infrastructure Infrastructure
	// ServiceEntries is where those are that routes may name. Nil: the source, if it has the
	// kind.
	ServiceEntries configstore.ConfigStoreCache
	// Inputs are sources of what is given to Apply: the cache has not synced before they have.
	Inputs []configstore.Syncer
	// Logger gets what cannot be read and calls of the Infrastructure that fail. Default: nil,
	// which discards.
	Logger *slog.Logger
}

// readOnly shows what is published.
type readOnly = derived.Cache

// Cache is a ConfigStoreCache of what a Converter makes of the Gateway API's objects in another
// one. It takes no writes (ErrReadOnly); put it beside others with aggregate.MakeCache. Create it with
// NewCache.
//
// It is empty until its source and the inputs have synced, and then has everything at once.
// A batch of the source is one of the Cache.
type Cache struct {
	readOnly
	opts      CacheOptions
	source    configstore.ConfigStoreCache
	resources map[configstore.GroupVersionKind]*resource
	published *derived.Published
	awaited   []configstore.Syncer
	hosting   *hosting // nil: there is no Infrastructure
	ran       atomic.Bool

	mu        sync.Mutex
	converter *Converter
	// ready: what the converter has is published.
	ready bool
	// objects are those that have a status, as the converter has them.
	objects map[ObjectKey]*configstore.Config
	// unread are the objects of the source that are not converted as they are, with the reasons.
	unread map[configstore.ConfigKey]error
	// look is called with objects whose status may not be what it should.
	look func([]ObjectKey)
}

// NewCache returns the cache of what becomes of the kinds of Schemas in source, or of
// those of them that it has. The source runs by itself, and may be read and written by others.
func NewCache(source configstore.ConfigStoreCache, opts ...CacheOptions) *Cache {
	o := options.One("gatewayapi.NewCache", opts)
	o.Provided = o.Provided || o.Infrastructure != nil
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.ServiceEntries == nil {
		o.ServiceEntries = source
	}
	c := &Cache{
		opts: o, source: source, resources: map[configstore.GroupVersionKind]*resource{}, converter: NewConverter(o.Options),
		awaited: append([]configstore.Syncer{source}, o.Inputs...), objects: map[ObjectKey]*configstore.Config{},
		unread: map[configstore.ConfigKey]error{},
	}
	c.published = derived.Publisher(istio.Schemas(), outputKinds(), c.isReady, o.Logger)
	c.readOnly = derived.Of(c.published)
	if o.Infrastructure != nil {
		c.hosting = newHosting(o.Infrastructure, o.Logger, func(gateway Key, now *Provided) { c.Apply(SetProvided(gateway, now)) })
	}
	c.subscribe()
	return c
}

// outputKinds returns the kinds that are made.
func outputKinds() []configstore.GroupVersionKind {
	return []configstore.GroupVersionKind{istio.DestinationRule, istio.Gateway, istio.VirtualService}
}

// Snapshot returns what the converter has made of what came so far, also before the cache has
// synced.
func (c *Cache) Snapshot() *Snapshot {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.converter.Snapshot()
}

// Source returns what NewCache was given.
func (c *Cache) Source() configstore.ConfigStoreCache { return c.source }

// Gateways returns what the Gateways that are ours ask for, sorted.
func (c *Cache) Gateways() []Desired {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []Desired
	for key := range c.converter.gatewayStates {
		if d := c.converter.desired(key); d != nil {
			out = append(out, *d)
		}
	}
	slices.SortFunc(out, func(a, b Desired) int { return a.Gateway.Compare(b.Gateway) })
	return out
}

// InfrastructureChanged says that what a Gateway runs on may not be what Ensure has
// returned: that is called again.
func (c *Cache) InfrastructureChanged(gateway Key) {
	if c.hosting != nil {
		c.hosting.again(gateway)
	}
}

// HasSynced implements ConfigStoreCache: it is true once the source and the inputs have synced,
// what becomes of their objects is published, and the handlers have processed it.
func (c *Cache) HasSynced() bool {
	c.begin()
	return c.published.HasSynced()
}

func (c *Cache) isReady() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ready
}

// Flush implements configstore.Flusher, for what was committed to the source, too.
func (c *Cache) Flush(ctx context.Context) error {
	if f, ok := configstore.As[configstore.Flusher](c.source); ok {
		if err := f.Flush(ctx); err != nil {
			return err
		}
	}
	return c.published.Flush(ctx)
}

// Run delivers events, and calls the Infrastructure, until stop is closed. When it returns, all
// that it started has ended. The source runs by itself. A second call panics.
func (c *Cache) Run(stop <-chan struct{}) {
	ctx, cancel := context.WithCancel(context.Background()) //nolint:forbidigo // The life of Run.
	var running sync.WaitGroup
	if !c.ran.Swap(true) {
		running.Go(func() {
			if configstore.WaitForSync(ctx, c.awaited...) == nil {
				c.begin()
			}
		})
		if c.hosting != nil {
			running.Go(func() { c.hosting.run(ctx) })
		}
	}
	defer running.Wait()
	defer cancel()
	c.published.Run(stop)
}
