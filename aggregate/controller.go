// SPDX-License-Identifier: Apache-2.0

package aggregate

import (
	"log/slog"
	"slices"
	"sync"

	"go.uber.org/atomic"

	"github.com/pilotkit/pilotkit/internal/notify"
	"github.com/pilotkit/pilotkit/internal/options"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// Options of a Controller. The zero value works.
type Options struct {
	// Updater is told, by RemoveShard, when a registry is deleted. It is what the
	// registries write to, or, if it reads from this controller and so does not
	// exist yet, use OnRemoveShard instead. The default is nobody.
	Updater xdsupdate.XDSUpdater
	// Logger gets a debug line for each registry that comes or goes. The default,
	// nil, discards.
	Logger *slog.Logger
}

// Controller is many registries as one. The package comment says how their
// answers become one, and what registries have to promise. Create it with
// NewController.
type Controller struct {
	updater xdsupdate.XDSUpdater
	logger  *slog.Logger
	queue   *notify.Queue[event]
	// merged is the registries and what is known of their services. It is
	// replaced, never changed.
	merged atomic.Pointer[merged]
	// group are the registries that Run runs.
	group sync.WaitGroup

	mu sync.Mutex
	// told are the registries whose events handlers are told.
	told []*registration
	// stop is that of Run.
	stop         <-chan struct{}
	ran, stopped bool
	// workloads: somebody wants to be told of workloads.
	workloads bool
	// removals are told of removed shards.
	removals []*removal
	// clusters has the cancel functions of handlers for one cluster.
	clusters map[registry.ClusterID][]func()
}

var (
	_ registry.ServiceDiscovery = (*Controller)(nil)
	_ registry.Controller       = (*Controller)(nil)
)

// removal is a function that was given to OnRemoveShard.
type removal struct{ handle func(xdsupdate.ShardKey) }

// Claimed is a registry with the updater that it writes to. The Controller
// closes the updater when the registry is deleted or replaced, so that nothing
// that the registry may still send can touch the shard of its successor.
type Claimed struct {
	registry.Instance
	Updater xdsupdate.ShardUpdater
}

// NewController returns a controller without registries.
func NewController(opts ...Options) *Controller {
	o := options.One("aggregate.NewController", opts)
	c := &Controller{
		updater: o.Updater, logger: o.Logger,
		queue:    notify.New(notify.Options[event]{Name: "aggregate"}),
		clusters: map[registry.ClusterID][]func(){},
	}
	if c.logger == nil {
		c.logger = slog.New(slog.DiscardHandler)
	}
	c.merged.Store(&merged{})
	return c
}

// AddRegistry adds a registry: a Kubernetes registry after the last of its kind,
// another one at the end. Before Run, Run will run it; afterwards its host does.
func (c *Controller) AddRegistry(r registry.Instance) {
	c.add(newRegistration(r, nil))
}

// AddRegistryAndRun adds a registry and runs it, now or when Run is called, until
// stop is closed, the registry is deleted or replaced, or Run ends. A nil stop is
// never closed.
func (c *Controller) AddRegistryAndRun(r registry.Instance, stop <-chan struct{}) {
	reg := newRegistration(r, stop)
	c.add(reg)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ran {
		c.startLocked(reg)
	}
}

func (c *Controller) add(reg *registration) {
	c.insert(reg)
	c.succeed(nil, reg)
	c.attach(reg)
	c.tellGateways(nil, reg)
	c.logger.Debug("registry added", reg.attributes()...)
}

// UpdateRegistry puts a registry in the place of the one of the same cluster and
// provider, in one step, or adds it if there is none. Before Run, Run will run
// it; afterwards its host does, and does so before the call, so that it has all
// its services. The shard stays; whoever is told of services is told of the
// difference.
func (c *Controller) UpdateRegistry(r registry.Instance) {
	reg := newRegistration(r, nil)
	old := c.replace(reg)
	if old == nil {
		c.add(reg)
		return
	}
	c.succeed(old, reg)
	c.attach(reg)
	c.forgo(reg)
	c.tellGateways(old, reg)
	c.logger.Debug("registry replaced", reg.attributes()...)
}

// DeleteRegistry removes the first registry of a cluster and provider, if there
// is one: it is asked nothing and heard no more, those who are told of services
// are told that its services are gone, and its shard is removed. A registry that
// Run runs is stopped, without waiting for it.
func (c *Controller) DeleteRegistry(cluster registry.ClusterID, provider registry.ProviderID) {
	c.remove(func(r registry.Instance) bool { return r.Cluster() == cluster && r.Provider() == provider })
}

// DeleteRegistryIfCurrent is DeleteRegistry for this very instance; it returns
// false if the instance is not, or no longer, one of the registries.
func (c *Controller) DeleteRegistryIfCurrent(r registry.Instance) bool {
	return c.remove(func(s registry.Instance) bool { return same(r, s) })
}

// Registries returns the registries in their order. The caller may modify the
// slice.
func (c *Controller) Registries() []registry.Instance {
	registrations := c.merged.Load().registrations
	out := make([]registry.Instance, len(registrations))
	for i, reg := range registrations {
		out[i] = reg.instance
	}
	return out
}

// OnRemoveShard has a function called with each shard whose registry is deleted,
// before DeleteRegistry returns and after reads have ceased to show it. It may be
// registered at any time, which is how an updater that reads from this controller
// subscribes.
func (c *Controller) OnRemoveShard(handle func(shard xdsupdate.ShardKey)) (cancel func()) {
	r := &removal{handle: handle}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.removals = append(slices.Clip(c.removals), r)
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.removals = slices.DeleteFunc(slices.Clone(c.removals), func(s *removal) bool { return s == r })
	}
}

// remove removes the first registry that is wanted.
func (c *Controller) remove(wanted func(registry.Instance) bool) bool {
	reg := c.cut(wanted)
	if reg == nil {
		return false
	}
	c.succeed(reg, nil)
	shard := xdsupdate.ShardKeyOf(reg.instance)
	if !slices.ContainsFunc(c.Registries(), func(r registry.Instance) bool { return xdsupdate.ShardKeyOf(r) == shard }) {
		c.announceRemoval(shard)
	}
	c.queue.Drain()
	c.tellGateways(reg, nil)
	c.logger.Debug("registry deleted", reg.attributes()...)
	return true
}

func (c *Controller) announceRemoval(shard xdsupdate.ShardKey) {
	if c.updater != nil {
		c.updater.RemoveShard(shard)
	}
	c.mu.Lock()
	removals := c.removals
	c.mu.Unlock()
	for _, r := range removals {
		r.handle(shard)
	}
}
