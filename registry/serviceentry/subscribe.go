// SPDX-License-Identifier: Apache-2.0

package serviceentry

import (
	"slices"
	"sync"

	"github.com/pilotkit/pilotkit/internal/notify"
	"github.com/pilotkit/pilotkit/registry"
)

// change is what handlers are notified of: the change of a service or, if event is
// not set, of a workload.
type change struct {
	serviceChange
	workload workloadChange
	// revision is that of the batch.
	revision uint64
}

func (c *change) isService() bool { return c.event != 0 }

// AppendServiceHandler implements registry.Controller.
func (c *Controller) AppendServiceHandler(handler registry.ServiceHandler) {
	c.SubscribeServices(handler)
}

// AppendWorkloadHandler implements registry.Controller. Handlers are notified of
// this registry's WorkloadEntries that have an IP address and count: those that
// are not healthy do not. They never see the workloads of others.
func (c *Controller) AppendWorkloadHandler(handler func(*registry.WorkloadInstance, registry.Event)) {
	c.SubscribeWorkloads(handler)
}

// SubscribeServices is like AppendServiceHandler, but returns a cancel function:
// once cancel has returned no further change is handed to the handler; one that
// is being handled may still be in progress. cancel may be called many times,
// from anywhere.
func (c *Controller) SubscribeServices(handler registry.ServiceHandler) (cancel func()) {
	return c.subscribe(
		func() []message {
			services := c.state.Load().services.List()
			adds := make([]message, 0, len(services))
			for _, s := range services {
				adds = append(adds, message{change: &change{serviceChange: serviceChange{nil, s, registry.EventAdd}}})
			}
			return adds
		},
		(*change).isService,
		func(c *change) { handler(c.prev, c.curr, c.event) },
	)
}

// SubscribeWorkloads is like AppendWorkloadHandler, but returns a cancel function,
// as SubscribeServices does.
func (c *Controller) SubscribeWorkloads(handler registry.WorkloadHandler) (cancel func()) {
	return c.subscribe(
		func() []message {
			var adds []message
			for _, w := range c.ownWorkloads() {
				adds = append(adds, message{change: &change{workload: workloadChange{nil, w}}})
			}
			return adds
		},
		func(c *change) bool { return !c.isService() },
		func(c *change) {
			if instance, event := c.workload.announced(); instance != nil {
				handler(instance, event)
			}
		},
	)
}

// subscribe registers a handler of some changes, which first gets what there is.
//
// When the queue reaches the registration the registry may be ahead of it: of the
// changes that are queued behind it, those up to the registry's revision are in
// what there is already.
func (c *Controller) subscribe(existing func() []message, wants func(*change) bool, handle func(*change)) (cancel func()) {
	var since uint64
	replay := sync.OnceValue(func() []message {
		since = c.revision
		return existing()
	})
	c.handlers.Inc()
	unsubscribe := c.queue.Subscribe(notify.Subscription[message]{
		Wants:  func(m message) bool { return !m.isEvent() && m.change.revision > since && wants(m.change) },
		Handle: func(m message) { handle(m.change) },
		Replay: func(yield func(message) bool) {
			for _, m := range replay() {
				if !yield(m) {
					return
				}
			}
		},
	})
	c.queue.Drain()
	return sync.OnceFunc(func() {
		unsubscribe()
		c.handlers.Dec()
	})
}

// notifyHandlers queues what the batch changed, behind which events may be
// waiting already. Without handlers nothing is kept.
func (b *batch) notifyHandlers() {
	c := b.Controller
	c.revision++
	if c.handlers.Load() == 0 {
		return
	}
	changes := make([]message, 0, len(b.services)+len(b.workloads))
	for _, s := range b.services {
		changes = append(changes, message{change: &change{serviceChange: s, revision: c.revision}})
	}
	for _, w := range b.workloads {
		changes = append(changes, message{change: &change{workload: w, revision: c.revision}})
	}
	c.queue.Push(changes...)
}

// ownWorkloads returns those of the WorkloadEntries, sorted by namespace and name.
func (c *Controller) ownWorkloads() []*workload {
	var out []*workload
	for _, s := range c.spaces {
		for _, w := range s.own {
			out = append(out, w)
		}
	}
	slices.SortFunc(out, (*workload).compare)
	return out
}

// announced returns what handlers get of a change, nil for nothing. WorkloadEntries
// without an IP address do not exist for them, as in Istio 1.30; but a workload
// that they know and that gets a host name instead is announced as deleted, which
// Istio leaves out.
func (c workloadChange) announced() (*registry.WorkloadInstance, registry.Event) {
	prev, curr := c.prev.announced(), c.curr.announced()
	switch {
	case curr == nil:
		return prev, registry.EventDelete
	case prev == nil:
		return curr, registry.EventAdd
	default:
		return curr, registry.EventUpdate
	}
}
