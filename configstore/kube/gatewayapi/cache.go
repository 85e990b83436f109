// SPDX-License-Identifier: Apache-2.0

package gatewayapi

import (
	"context"
	"log/slog"
	"slices"
	"sync"

	"go.uber.org/atomic"

	"github.com/pilotkit/pilotkit/aggregate"
	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/internal/options"
)

// CacheOptions are the options of a Cache. The zero value works.
type CacheOptions struct {
	Options
	// Infrastructure runs the proxies of Gateways and reports their addresses; it implies
	// Options.Provided. If nil, Options.Provided decides.
	Infrastructure Infrastructure
	// ServiceEntries is the store of the ServiceEntries that routes may reference. Default: nil,
	// the source, if it has the kind.
	ServiceEntries configstore.ConfigStoreCache
	// Inputs are the sources of changes passed to Apply: the cache does not sync before them.
	Inputs []configstore.Syncer
	// Logger gets objects that cannot be decoded, and failed calls of the Infrastructure. Default:
	// nil, which discards.
	Logger *slog.Logger
}

// merged has the methods of a ConfigStoreCache.
type merged = aggregate.Cache

// Cache is a ConfigStoreCache of all objects of another store and of the configs that a Converter
// derives from the Gateway API objects. Its schemas are Istio's. Writes return ErrReadOnly.
// Create a Cache with NewCache.
//
// A batch of the source and the configs that result from it are one batch of the Cache. There are
// no resulting configs until the source and the inputs have synced, and then there are all at once.
// An object of the source hides a resulting config of the same key.
type Cache struct {
	*merged
	stage     *aggregate.Stage
	opts      CacheOptions
	source    configstore.ConfigStoreCache
	resources map[configstore.GroupVersionKind]*resource
	awaited   []configstore.Syncer
	hosting   *hosting // nil without an Infrastructure
	ran       atomic.Bool

	mu        sync.Mutex
	converter *Converter
	// ready is set once the converter's result is published.
	ready bool
	// objects are the converter's present objects of the kinds with a status.
	objects map[ObjectKey]*configstore.Config
	// unread contains the objects of the source that are not converted as written, with the
	// reasons.
	unread map[configstore.ConfigKey]error
	// look is called with objects whose status may differ from the wanted one.
	look func([]ObjectKey)
}

// NewCache returns a cache of the objects in source, and of the configs for its objects of all kinds
// of Schemas. Run runs the source, so the caller must not run it. Others may read and write it.
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
	c.converter.logger = o.Logger
	if o.Infrastructure != nil {
		c.hosting = newHosting(o.Infrastructure, o.Logger, func(gateway Key, now *Provided) { c.Apply(setProvided(gateway, now)) })
	}
	c.subscribe()
	return c
}

// Snapshot returns the converter's result for the objects received so far, even before the cache
// has synced.
func (c *Cache) Snapshot() *Snapshot {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.converter.Snapshot()
}

// Source returns the source that was passed to NewCache.
func (c *Cache) Source() configstore.ConfigStoreCache { return c.source }

// Gateways returns the requirements of the Gateways that this controller handles, sorted.
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

// InfrastructureChanged reports that the infrastructure of a Gateway may differ from the last
// result of Ensure, and causes another call of Ensure.
func (c *Cache) InfrastructureChanged(gateway Key) {
	if c.hosting != nil {
		c.hosting.again(gateway)
	}
}

// HasSynced implements ConfigStoreCache. It returns true once the source and the inputs have
// synced, the resulting configs are published, and the handlers have processed them.
func (c *Cache) HasSynced() bool {
	c.begin()
	return c.stage.HasSynced()
}

func (c *Cache) isReady() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ready
}

// Run runs the source, delivers events and calls the Infrastructure until stop is closed. All
// goroutines that Run started have ended when it returns. A second call panics.
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
	c.merged.Run(stop)
}
