// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"sync"

	"github.com/pilotkit/pilotkit/internal/notify"
	"github.com/pilotkit/pilotkit/registry"
)

// announcement is a change for handlers, or the report of an update to an updater.
type announcement struct {
	kind     kind
	service  ServiceChange
	workload workloadChange
}

// workloadChange is a change of a workload as handlers see it.
type workloadChange struct{ prev, curr *registry.WorkloadInstance }

// notify calls a handler.
func (c workloadChange) notify(handler registry.WorkloadHandler) {
	switch {
	case c.curr != nil && c.prev != nil:
		handler(c.curr, registry.EventUpdate)
	case c.curr != nil:
		handler(c.curr, registry.EventAdd)
	case c.prev != nil:
		handler(c.prev, registry.EventDelete)
	}
}

// kind is the kind of an announcement.
type kind int

const (
	ofUpdate kind = iota
	ofService
	ofWorkload
	ofGateways
	kinds
)

// observed reports whether there are subscriptions to a kind.
func (p *Publisher[E, S]) observed(k kind) bool { return p.handlers[k].Load() > 0 }

// announceLocked queues the changes for handlers. Events may already be queued before them. Changes
// without a handler are not queued.
func (p *Publisher[E, S]) announceLocked(state *S, c *Change) {
	p.last = state
	if c == nil {
		return
	}
	if p.observed(ofService) {
		for _, s := range c.ServiceChanges {
			p.push(announcement{kind: ofService, service: s})
		}
	}
	if c.WorkloadChanges != nil && p.observed(ofWorkload) {
		for prev, curr := range c.WorkloadChanges {
			p.push(announcement{kind: ofWorkload, workload: workloadChange{prev, curr}})
		}
	}
	if c.Gateways && p.observed(ofGateways) {
		p.push(announcement{kind: ofGateways})
	}
}

func (p *Publisher[E, S]) push(a announcement) { p.queue.Push(message[E]{announcement: &a}) }

// SubscribeServices registers a handler of services. It first gets an addition for each existing
// service. After cancel has returned, no further change is passed to the handler, but a call may
// still be in progress. cancel may be called many times, from anywhere.
func (p *Publisher[E, S]) SubscribeServices(handler registry.ServiceHandler) (cancel func()) {
	return p.subscribe(ofService,
		func(s *S) []announcement {
			services := p.opts.Services(s)
			adds := make([]announcement, 0, len(services))
			for _, service := range services {
				adds = append(adds, announcement{service: ServiceChange{nil, service, registry.EventAdd}})
			}
			return adds
		},
		func(a *announcement) { handler(a.service.Prev, a.service.Curr, a.service.Event) },
	)
}

// SubscribeWorkloads is SubscribeServices for a handler of workloads.
func (p *Publisher[E, S]) SubscribeWorkloads(handler registry.WorkloadHandler) (cancel func()) {
	return p.subscribe(ofWorkload,
		func(s *S) []announcement {
			workloads := p.opts.Workloads(s)
			adds := make([]announcement, 0, len(workloads))
			for _, w := range workloads {
				adds = append(adds, announcement{workload: workloadChange{nil, w}})
			}
			return adds
		},
		func(a *announcement) { a.workload.notify(handler) },
	)
}

// SubscribeNetworkGateways is SubscribeServices for a function that is called after a change of
// gateways. It is not called for existing gateways.
func (p *Publisher[E, S]) SubscribeNetworkGateways(handler func()) (cancel func()) {
	return p.subscribe(ofGateways, func(*S) []announcement { return nil }, func(*announcement) { handler() })
}

// subscribe registers a handler of one kind with a replay of the last announced state. Later
// announcements are behind the handler in the queue and are not part of that state, even if the
// registry has published further states when the queue reaches the handler.
func (p *Publisher[E, S]) subscribe(
	k kind, existing func(*S) []announcement, handle func(*announcement),
) (cancel func()) {
	p.handlers[k].Inc()
	unsubscribe := p.register(existing, notify.Subscription[message[E]]{
		Wants:  func(m message[E]) bool { return !m.isEvent() && m.announcement.kind == k },
		Handle: func(m message[E]) { handle(m.announcement) },
	})
	p.deliverInline()
	return sync.OnceFunc(func() {
		unsubscribe()
		p.handlers[k].Dec()
	})
}

// register appends a subscription with its replay to the queue.
func (p *Publisher[E, S]) register(existing func(*S) []announcement, s notify.Subscription[message[E]]) (cancel func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	state := p.last
	replay := sync.OnceValue(func() []announcement { return existing(state) })
	s.Replay = func(yield func(message[E]) bool) {
		for _, a := range replay() {
			if !yield(message[E]{announcement: &a}) {
				return
			}
		}
	}
	return p.queue.Subscribe(s)
}
