// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"sync"

	"go.uber.org/atomic"

	"github.com/pilotkit/pilotkit/internal/notify"
	"github.com/pilotkit/pilotkit/internal/options"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// Registry is a registry that the host fills. Create it with New.
type Registry struct {
	opts   Options
	shard  xdsupdate.ShardKey
	deltas xdsupdate.EndpointDeltaUpdater // nil if the updater takes none
	queue  *notify.Queue[change]

	// state is what readers see. It is replaced under mu.
	state atomic.Pointer[state]

	// mu makes commits and their place in the queue one step.
	mu sync.Mutex
}

var (
	_ registry.Instance           = (*Registry)(nil)
	_ registry.Subscriber         = (*Registry)(nil)
	_ registry.GatewaySubscriber  = (*Registry)(nil)
	_ registry.ServiceSnapshotter = (*Registry)(nil)
)

// New returns an empty registry. It starts nothing.
func New(opts ...Options) *Registry {
	o := options.One("memory.New", opts)
	if o.Provider == "" {
		o.Provider = registry.Memory
	}
	r := &Registry{
		opts:  o,
		shard: xdsupdate.ShardKey{Cluster: o.Cluster, Provider: o.Provider},
		queue: notify.New[change](notify.Options[change]{Name: "registry/memory"}),
	}
	r.state.Store(&state{services: registry.NewServiceSet()})
	if o.Updater != nil {
		r.deltas, _ = o.Updater.(xdsupdate.EndpointDeltaUpdater)
		// The updater is the first subscriber, so that it knows before handlers do.
		r.queue.Subscribe(notify.Subscription[change]{Handle: r.update})
		r.queue.Drain()
	}
	return r
}

// Provider returns Options.Provider.
func (r *Registry) Provider() registry.ProviderID { return r.opts.Provider }

// Cluster returns Options.Cluster.
func (r *Registry) Cluster() registry.ClusterID { return r.opts.Cluster }

// Run returns when stop is closed. From then on nobody is told of changes. A
// second call panics. Changes are told whether Run was called or not.
func (r *Registry) Run(stop <-chan struct{}) { r.queue.Run(stop) }

// HasSynced reports whether the host has filled in the initial state, by
// Options.HasSynced.
func (r *Registry) HasSynced() bool { return r.opts.HasSynced == nil || r.opts.HasSynced() }

// commit runs one change: edit returns the next state and what is to be told, or
// the state that it got if there is nothing to change.
func (r *Registry) commit(edit func(*state) (*state, change, error)) error {
	if err := r.commitLocked(edit); err != nil {
		return err
	}
	r.queue.Drain()
	return nil
}

func (r *Registry) commitLocked(edit func(*state) (*state, change, error)) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	old := r.state.Load()
	next, c, err := edit(old)
	if err != nil || next == old {
		return err
	}
	r.state.Store(next)
	if !c.empty() {
		r.queue.Push(c)
	}
	return nil
}
