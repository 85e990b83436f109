// SPDX-License-Identifier: Apache-2.0

package serviceentry

import (
	"context"
	"log/slog"
	"net/netip"
	"sync"

	"go.uber.org/atomic"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/internal/configfeed"
	"github.com/pilotkit/pilotkit/internal/options"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/internal/publish"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// Controller is the registry of the ServiceEntries and WorkloadEntries of a cache. It behaves like
// Istio 1.30, except that
//
//   - workloads are also distinguished by cluster and kind, so workloads with the same name do not
//     hide
//     each other;
//   - an endpoint is sent once for each host, namespace and shard, even if the service has several
//     addresses or several entries contribute it;
//   - the network of an endpoint is the same in its field and in its label;
//   - proxies are found by any address of an endpoint;
//   - unchanged objects are not sent, and all changes are sent, including the last endpoint of a
//     DNS
//     service, the creation time that orders two entries, and the IP address of a WorkloadEntry.
type Controller struct {
	options Options
	configs configstore.ConfigStoreCache
	logger  *slog.Logger
	// publisher has the state that readers see, and delivers events.
	publisher *publish.Publisher[event, state]
	// cancel ends the subscription to configs.
	cancel  func()
	running atomic.Bool

	// Only the goroutine that handles a batch uses these.
	settings settings
	tables   *tables
	interner *interner
	spaces   map[string]*space
	pods     map[netip.Addr][]*workload
	batch    *batch

	// foreignMu guards foreign, which batches change and explanations read.
	foreignMu sync.Mutex
	foreign   map[registry.WorkloadKey]*workload
}

var (
	_ registry.Instance           = (*Controller)(nil)
	_ registry.ServiceSnapshotter = (*Controller)(nil)
	_ registry.Subscriber         = (*Controller)(nil)
	_ registry.WorkloadReceiver   = (*Controller)(nil)
	_ xdsupdate.RootReader        = (*Controller)(nil)
	_ configstore.Drainer         = (*Controller)(nil)
	_ configstore.Flusher         = (*Controller)(nil)
)

// New returns a registry of the configs in a cache, which reports every change to
// the updater. A nil updater is xdsupdate.Discard, and a warning. New converts the configs that exist
// if the cache is a configstore.Subscriber, and starts nothing: the registry works whenever the cache
// delivers events, that is while the cache runs or is drained. The cache must know the kinds
// ServiceEntry and WorkloadEntry.
func New(configs configstore.ConfigStoreCache, updater xdsupdate.XDSUpdater, opts ...Options) *Controller {
	c := newController(configs, updater, options.One("serviceentry.New", opts))
	for _, n := range c.options.Namespaces {
		c.settings.namespaces[n.Name] = n
	}
	var joined bool
	if c.cancel, joined = c.publisher.Inbox().Join(configs, c.kinds(), c.enqueue, c.publisher.Drain); !joined {
		c.cancel = configfeed.Subscribe(configs, c.kinds(), func(changes []configstore.Change) {
			c.enqueue(changes, nil)
			c.publisher.Drain()
		})
	}
	return c
}

// newController returns an empty registry without subscriptions.
func newController(configs configstore.ConfigStoreCache, updater xdsupdate.XDSUpdater, o Options) *Controller {
	c := &Controller{
		options: o, configs: configs, logger: o.Logger,
		interner: newInterner(), settings: settings{o.Mesh, map[string]Namespace{}},
		spaces: map[string]*space{}, pods: map[netip.Addr][]*workload{}, foreign: map[registry.WorkloadKey]*workload{},
	}
	if c.logger == nil {
		c.logger = slog.New(slog.DiscardHandler)
	}
	c.tables = &tables{addresses: newAddressTable()}
	services := registry.NewServiceSet()
	c.publisher = publish.New(publish.Options[event, state]{
		Name: "serviceentry", Shard: xdsupdate.ShardKey{Cluster: o.ClusterID, Provider: registry.External},
		Updater: updater, Logger: o.Logger, Handle: c.handle, Inline: true,
		Commit:   func(prev, next *state) { c.batch.commit(prev, next) },
		Initial:  &state{tables: c.tables, settings: c.settings, services: services, allocated: c.allocation(services)},
		Set:      c.setOf,
		Services: func(s *state) []*registry.Service { return s.services.List() }, Workloads: c.ownWorkloads,
	})
	c.batch = newBatch(c)
	return c
}

// kinds returns the kinds of configs that the registry reads.
func (c *Controller) kinds() []configstore.GroupVersionKind {
	if c.options.WorkloadEntriesOnly {
		return []configstore.GroupVersionKind{istio.WorkloadEntry}
	}
	return []configstore.GroupVersionKind{istio.ServiceEntry, istio.WorkloadEntry}
}

// Provider returns registry.External.
func (c *Controller) Provider() registry.ProviderID { return registry.External }

// Cluster returns Options.ClusterID.
func (c *Controller) Cluster() registry.ClusterID { return c.options.ClusterID }

// Run waits until stop is closed and then ends the registry: later events are ignored, and neither
// the updater nor the handlers are called, except for a batch that another goroutine is handling.
// The last state stays readable. A registry works without Run. A second call panics.
func (c *Controller) Run(stop <-chan struct{}) {
	if !c.running.CompareAndSwap(false, true) {
		panic("serviceentry: Run called twice")
	}
	<-stop
	c.cancel() // first, because it may bring configs for other followers
	// Until here the goroutine that brought an event handled it. Running the queue now ends it.
	c.publisher.Run(stop)
}

// Drain handles the queued events on the caller's goroutine, unless another goroutine is handling
// them. It is rarely needed, because the goroutine that adds an event drains the queue.
func (c *Controller) Drain() { c.publisher.Drain() }

// Flush waits until all events added before the call have been handled, and the updater and the
// handlers have been notified. Handlers and the updater must not call it. It returns the cause of
// ctx's end, or an error if Run has ended.
func (c *Controller) Flush(ctx context.Context) error { return c.publisher.Flush(ctx) }

// HasSynced reports whether readers see all configs that the cache had when it had synced, and the
// updater has been notified of them.
func (c *Controller) HasSynced() bool { return c.publisher.HasSynced(c.configs.HasSynced) }

// Pending implements configstore.PendingSyncer.
func (c *Controller) Pending() string {
	switch {
	case !c.configs.HasSynced():
		return configstore.Pending(c.configs)
	case !c.publisher.Started():
		return "Run has not been called"
	default:
		return ""
	}
}
