// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"slices"
	"sync"

	"github.com/pilotkit/pilotkit/internal/notify"
	"github.com/pilotkit/pilotkit/registry"
)

// change is what handlers are notified of: one of its fields besides revision.
type change struct {
	service  *serviceChange
	workload *workloadChange
	gateways bool
	// revision is that of the batch.
	revision uint64
}

// AppendServiceHandler implements registry.Controller.
func (c *Controller) AppendServiceHandler(handler registry.ServiceHandler) {
	c.SubscribeServices(handler)
}

// AppendWorkloadHandler implements registry.Controller. Handlers are notified of
// the pods that are running or pending, and ready, and are not being deleted. They
// never see the workloads of others.
func (c *Controller) AppendWorkloadHandler(handler func(*registry.WorkloadInstance, registry.Event)) {
	c.SubscribeWorkloads(handler)
}

// AppendNetworkGatewayHandler implements registry.ServiceDiscovery.
func (c *Controller) AppendNetworkGatewayHandler(handler func()) { c.SubscribeNetworkGateways(handler) }

// SubscribeServices is like AppendServiceHandler, but returns a cancel function:
// once cancel has returned no further change is handed to the handler; one that is
// being handled may still be in progress. cancel may be called many times, from
// anywhere.
func (c *Controller) SubscribeServices(handler registry.ServiceHandler) (cancel func()) {
	return c.subscribe(
		func() []change {
			var adds []change
			for _, s := range c.state.Load().services.List() {
				adds = append(adds, change{service: &serviceChange{nil, s, registry.EventAdd}})
			}
			return adds
		},
		func(ch *change) bool { return ch.service != nil },
		func(ch *change) { handler(ch.service.prev, ch.service.curr, ch.service.event) },
	)
}

// SubscribeWorkloads is like AppendWorkloadHandler, but returns a cancel function,
// as SubscribeServices does.
func (c *Controller) SubscribeWorkloads(handler registry.WorkloadHandler) (cancel func()) {
	return c.subscribe(
		func() []change {
			var adds []change
			for _, w := range c.ownWorkloads() {
				adds = append(adds, change{workload: &workloadChange{nil, w}})
			}
			return adds
		},
		func(ch *change) bool { return ch.workload != nil },
		func(ch *change) { handler(ch.workload.event()) },
	)
}

// SubscribeNetworkGateways is like AppendNetworkGatewayHandler, but returns a
// cancel function, as SubscribeServices does.
func (c *Controller) SubscribeNetworkGateways(handler func()) (cancel func()) {
	return c.subscribe(
		func() []change { return nil },
		func(ch *change) bool { return ch.gateways },
		func(*change) { handler() },
	)
}

// subscribe registers a handler of some changes, which first gets what there is.
//
// When the queue reaches the registration the registry may be ahead of it: of the
// changes that are queued behind it, those up to the registry's revision are in
// what there is already.
func (c *Controller) subscribe(existing func() []change, wants func(*change) bool, handle func(*change)) (cancel func()) {
	var since uint64
	replay := sync.OnceValue(func() []change {
		since = c.revision
		return existing()
	})
	c.handlers.Inc()
	unsubscribe := c.queue.Subscribe(notify.Subscription[message]{
		Wants:  func(m message) bool { return !m.isEvent() && m.change.revision > since && wants(m.change) },
		Handle: func(m message) { handle(m.change) },
		Replay: func(yield func(message) bool) {
			for _, ch := range replay() {
				if !yield(message{change: &ch}) {
					return
				}
			}
		},
	})
	return sync.OnceFunc(func() {
		unsubscribe()
		c.handlers.Dec()
	})
}

// notifyHandlers queues what the batch changed, behind which events may be waiting
// already. Without handlers nothing is kept.
func (c *Controller) notifyHandlers() {
	c.revision++
	if c.handlers.Load() == 0 {
		return
	}
	b := &c.engine.batch
	changes := make([]message, 0, len(b.services)+len(b.workloads)+1)
	for _, s := range b.services {
		changes = append(changes, message{change: &change{service: &s, revision: c.revision}})
	}
	for _, p := range b.workloads {
		w := &workloadChange{c.engine.instanceOf(p.prev), c.engine.instanceOf(p.curr)}
		changes = append(changes, message{change: &change{workload: w, revision: c.revision}})
	}
	if b.gatewaysChanged {
		changes = append(changes, message{change: &change{gateways: true, revision: c.revision}})
	}
	c.queue.Push(changes...)
}

// ownWorkloads returns the pods that handlers see, in the order of
// registry.CompareWorkloads. Only the goroutine that handles a batch calls it.
func (c *Controller) ownWorkloads() []*registry.WorkloadInstance {
	var out []*registry.WorkloadInstance
	c.engine.pods.Entries(func(p *podState) bool {
		if w := c.engine.instanceOf(p); w != nil {
			out = append(out, w)
		}
		return true
	})
	slices.SortFunc(out, registry.CompareWorkloads)
	return out
}

// workloadChange is the change of a pod, as handlers see it; nil for none.
type workloadChange struct{ prev, curr *registry.WorkloadInstance }

// event returns what handlers get of a change.
func (w *workloadChange) event() (*registry.WorkloadInstance, registry.Event) {
	switch {
	case w.curr == nil:
		return w.prev, registry.EventDelete
	case w.prev == nil:
		return w.curr, registry.EventAdd
	default:
		return w.curr, registry.EventUpdate
	}
}
