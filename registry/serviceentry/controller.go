// SPDX-License-Identifier: Apache-2.0

package serviceentry

import (
	"log/slog"
	"net/netip"
	"sync"

	"go.uber.org/atomic"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/internal/cow"
	"github.com/pilotkit/pilotkit/internal/options"
	"github.com/pilotkit/pilotkit/internal/serial"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// Controller is the registry of the ServiceEntries and WorkloadEntries of a
// cache. It behaves as Istio 1.30's, except that
//
//   - workloads are told apart by cluster and kind, too, so that those of the same
//     name do not hide one another;
//   - an endpoint is sent once for each host, namespace and shard, even if the
//     service has several addresses or several entries contribute it;
//   - the network of an endpoint is the same in its field and in its label;
//   - proxies are found by any address of an endpoint;
//   - nothing is sent when nothing changed, and everything that changed is sent:
//     the last endpoint of a DNS service, the creation time that orders two
//     entries, the IP address of a WorkloadEntry.
type Controller struct {
	options  Options
	configs  configstore.ConfigStoreCache
	updater  xdsupdate.XDSUpdater
	deltas   xdsupdate.EndpointDeltaUpdater // nil if updater takes complete lists only
	shard    xdsupdate.ShardKey
	logger   *slog.Logger
	queue    *serial.Queue[event]
	cancel   func()
	running  atomic.Bool
	synced   atomic.Bool
	ended    atomic.Bool
	view     atomic.Pointer[view]
	interner *interner

	serviceHandlers  handlers[registry.ServiceHandler]
	workloadHandlers handlers[registry.WorkloadHandler]

	// Only the goroutine that handles a batch uses these.
	spaces map[string]*space
	pods   map[netip.Addr][]*workload
	batch  *batch

	// mu guards these, and the fields of entries, bindings and hosts that readers
	// see. Only the goroutine that handles a batch writes them, so that it may read
	// them without mu.
	mu        sync.RWMutex
	directory directory
	addresses addressIndex
	services  cow.Sorted[*registry.Service]
	foreign   map[registry.WorkloadKey]*workload
	mesh      Mesh
	// namespaces is replaced, never modified.
	namespaces map[string]Namespace
}

var _ registry.Instance = (*Controller)(nil)

// New returns a registry of the configs in a cache, which tells the updater of
// every change. It starts nothing: it works whenever the cache delivers events,
// that is while the cache runs or is drained. The cache must know the kinds
// ServiceEntry and WorkloadEntry.
func New(configs configstore.ConfigStoreCache, updater xdsupdate.XDSUpdater, opts ...Options) *Controller {
	o := options.One("serviceentry.New", opts)
	c := &Controller{
		options: o, configs: configs, updater: updater, logger: o.Logger,
		shard:    xdsupdate.ShardKey{Cluster: o.ClusterID, Provider: registry.External},
		interner: newInterner(), addresses: newAddressIndex(),
		spaces: map[string]*space{}, pods: map[netip.Addr][]*workload{}, mesh: o.Mesh, namespaces: map[string]Namespace{},
		directory: directory{}, foreign: map[registry.WorkloadKey]*workload{},
	}
	if c.logger == nil {
		c.logger = slog.New(slog.DiscardHandler)
	}
	c.deltas, _ = updater.(xdsupdate.EndpointDeltaUpdater)
	for _, n := range o.Namespaces {
		c.namespaces[n.Name] = n
	}
	c.view.Store(newView(c.services, o.AddressAllocation, c.logger))
	c.batch = &batch{Controller: c}
	c.queue = serial.NewQueue(c.handle)
	c.cancel = c.subscribe()
	return c
}

// subscribe makes the cache deliver events, in batches if it can.
func (c *Controller) subscribe() (cancel func()) {
	kinds := []configstore.GroupVersionKind{istio.ServiceEntry, istio.WorkloadEntry}
	if c.options.WorkloadEntriesOnly {
		kinds = kinds[1:]
	}
	switch configs := c.configs.(type) {
	case configstore.BatchSubscriber:
		return configs.SubscribeBatch(kinds, c.configsChanged)
	case configstore.Subscriber:
		cancels := make([]func(), len(kinds))
		for i, k := range kinds {
			cancels[i] = configs.Subscribe(k, c.configChanged)
		}
		return func() {
			for _, cancel := range cancels {
				cancel()
			}
		}
	default:
		for _, k := range kinds {
			c.configs.RegisterEventHandler(k, c.configChanged)
		}
		return func() {}
	}
}

// Provider returns registry.External.
func (c *Controller) Provider() registry.ProviderID { return registry.External }

// Cluster returns Options.ClusterID.
func (c *Controller) Cluster() registry.ClusterID { return c.options.ClusterID }

// Run returns when stop is closed, and with it ends the registry: nothing that
// happens from then on is heeded, and the updater is told nothing more, except of
// a batch that another goroutine is handling. What the registry shows stays.
// Registries that were never run work all the same. A second call panics.
func (c *Controller) Run(stop <-chan struct{}) {
	if !c.running.CompareAndSwap(false, true) {
		panic("serviceentry: Run was called twice")
	}
	<-stop
	c.ended.Store(true)
	c.cancel()
}

// HasSynced reports whether everything that was in the cache when it had synced
// can be seen, and the updater has been told of it.
func (c *Controller) HasSynced() bool {
	if c.synced.Load() {
		return true
	}
	if !c.configs.HasSynced() || !c.queue.Idle() {
		return false
	}
	c.synced.Store(true)
	return true
}
