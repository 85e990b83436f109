// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"context"
	"fmt"
	"log/slog"
	"sync"

	"go.uber.org/atomic"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/internal/guard"
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

	// A change is queued twice: reports calls the updater, within the batch in
	// which the change becomes visible; queue calls the handlers, after it.
	reports, queue *notify.Queue[change]

	// state is what readers see. It is replaced under mu.
	state atomic.Pointer[state]

	// mu makes commits and their place in the queues one step.
	mu sync.Mutex
	// reported is the state after the last change that reports has passed on to
	// queue: what a new handler starts with.
	reported *state
}

var (
	_ registry.Instance           = (*Registry)(nil)
	_ registry.Subscriber         = (*Registry)(nil)
	_ registry.GatewaySubscriber  = (*Registry)(nil)
	_ registry.ServiceSnapshotter = (*Registry)(nil)
	_ configstore.Drainer         = (*Registry)(nil)
	_ configstore.Flusher         = (*Registry)(nil)
	_ xdsupdate.ServicePusher     = (*Registry)(nil)
)

// New returns an empty registry. It starts nothing.
func New(opts ...Options) *Registry {
	o := options.One("memory.New", opts)
	if o.Provider == "" {
		o.Provider = registry.Memory
	}
	r := &Registry{
		opts:     o,
		shard:    xdsupdate.ShardKey{Cluster: o.Cluster, Provider: o.Provider},
		reported: &state{services: registry.NewServiceSet()},
	}
	queue := notify.Options[change]{Name: "registry/memory", Panicked: func(p *guard.PanicError, _ change, _ int) {
		r.panicked("event handler", p)
	}}
	r.reports, r.queue = notify.New(queue), notify.New(queue)
	r.state.Store(r.reported)
	r.deltas, _ = xdsupdate.As[xdsupdate.EndpointDeltaUpdater](o.Updater)
	r.reports.Subscribe(notify.Subscription[change]{Handle: r.report})
	r.reports.Drain()
	if o.Updater != nil {
		// ProxyUpdate is not part of the batch: a host may do anything in it. Its
		// subscription is the first, so that the updater is called before handlers are.
		r.queue.Subscribe(notify.Subscription[change]{
			Wants:  func(c change) bool { return c.workload != nil },
			Handle: r.updateProxies,
		})
		r.queue.Drain()
	}
	return r
}

// Provider returns Options.Provider.
func (r *Registry) Provider() registry.ProviderID { return r.opts.Provider }

// Cluster returns Options.Cluster.
func (r *Registry) Cluster() registry.ClusterID { return r.opts.Cluster }

// PushesTo implements xdsupdate.ServicePusher: it returns Options.Updater.
func (r *Registry) PushesTo(*registry.Service) xdsupdate.XDSUpdater { return r.opts.Updater }

// Run delivers until stop is closed; from then on neither the updater nor handlers
// are called. A second call panics. The registry works without it.
func (r *Registry) Run(stop <-chan struct{}) {
	r.queue.Run(stop)
	r.reports.Run(stop) // which is closed: nothing is reported any more
}

// Drain implements configstore.Drainer.
func (r *Registry) Drain() {
	r.updateBatch(r.reports.Drain)
	r.queue.Drain()
}

// updateBatch publishes within a batch of the updater.
func (r *Registry) updateBatch(publish func()) {
	r.panicked("updater", guard.NewInner(publish).Within(func(f func()) { xdsupdate.UpdateBatch(r.opts.Updater, f) }))
}

// call calls the updater.
func (r *Registry) call(f func()) { r.panicked("updater", guard.Call(f)) }

func (r *Registry) panicked(what string, p *guard.PanicError) {
	if p != nil {
		p.Log(r.opts.Logger, what, slog.String("registry", r.shard.String()))
	}
}

// Flush implements configstore.Flusher.
func (r *Registry) Flush(ctx context.Context) error {
	for _, queue := range []*notify.Queue[change]{r.reports, r.queue} {
		if err := queue.Flush(ctx); err != nil {
			return fmt.Errorf("flush registry %s: %w", r.shard, err)
		}
	}
	return nil
}

// HasSynced reports whether the host has filled in the initial state, by
// Options.HasSynced.
func (r *Registry) HasSynced() bool { return r.opts.HasSynced == nil || r.opts.HasSynced() }

// commit runs one change: edit returns the next state and what is to be reported, or
// the state that it got if there is nothing to change.
func (r *Registry) commit(edit func(*state) (*state, change, error)) error {
	var err error
	r.updateBatch(func() {
		err = r.commitLocked(edit)
		// If another goroutine is reporting, it goes on with this change, and its
		// batch, which began before, ends after that.
		r.reports.Drain()
	})
	r.queue.Drain()
	return err
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
	c.state = next
	r.reports.Push(c)
	return nil
}

// report calls the updater for a change and passes it on to the handlers.
func (r *Registry) report(c change) {
	if r.opts.Updater != nil {
		r.update(c)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reported, c.state = c.state, nil
	if c.service != nil || c.workload != nil || c.gateways {
		r.queue.Push(c)
	}
}
