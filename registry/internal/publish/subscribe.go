// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"sync"

	"github.com/pilotkit/pilotkit/internal/notify"
	"github.com/pilotkit/pilotkit/registry"
)

// announcement is what handlers are notified of.
type announcement struct {
	kind     kind
	service  ServiceChange
	workload workloadChange
	// proxies are the updater's.
	proxies func() []Proxy
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

// kind says what an announcement is of.
type kind int

const (
	ofUpdate kind = iota
	ofService
	ofWorkload
	ofGateways
	kinds
)

// observed reports whether handlers subscribe to a kind.
func (p *Publisher[E, S]) observed(k kind) bool { return p.handlers[k].Load() > 0 }

// announceLocked queues what handlers are to be notified of, behind which events may be
// waiting already. Without handlers nothing is kept.
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

// SubscribeServices registers a handler of services, which first gets an addition for
// each service that there is. Once cancel has returned no further change is handed to
// the handler; one that is being handled may still be in progress. cancel may be called
// many times, from anywhere.
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

// SubscribeNetworkGateways is SubscribeServices for a function that is called after the
// gateways have changed, and not for those that there are.
func (p *Publisher[E, S]) SubscribeNetworkGateways(handler func()) (cancel func()) {
	return p.subscribe(ofGateways, func(*S) []announcement { return nil }, func(*announcement) { handler() })
}

// subscribe registers a handler of one kind, which first gets what the last
// announced state has: what is announced from now on is behind it in the queue, and is
// not in that state, however far the registry is ahead when the queue reaches it.
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

// register puts a subscription into the queue, with its replay.
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
