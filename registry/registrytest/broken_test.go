// SPDX-License-Identifier: Apache-2.0

package registrytest_test

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pilotkit/pilotkit/internal/test/contract"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/memory"
	"github.com/pilotkit/pilotkit/registry/registrytest"
)

// broken is a registry with one fault, or none for "".
type broken struct {
	*memory.Registry
	fault string

	mu       sync.Mutex
	services []*registry.Service
	of, last *registry.ServiceSet
	handlers []registry.ServiceHandler
	held     lock
	gone     []*registry.ServiceInstance
	panicked bool
}

// lock is a mutex that lets everybody pass when the test is over, so that
// deadlocks leave no goroutines behind.
type lock struct{ taken, over chan struct{} }

func newLock(tb testing.TB) lock {
	tb.Helper()
	l := lock{taken: make(chan struct{}, 1), over: make(chan struct{})}
	tb.Cleanup(func() { close(l.over) })
	return l
}

func (l lock) Lock() {
	select {
	case l.taken <- struct{}{}:
	case <-l.over:
	}
}

func (l lock) Unlock() {
	select {
	case <-l.taken:
	default:
	}
}

// pass waits until the lock is free.
func (l lock) pass() {
	l.Lock()
	defer l.Unlock()
}

func (b *broken) is(fault string) bool { return b.fault == fault }

func (b *broken) Services() []*registry.Service {
	services := b.Registry.Services()
	switch {
	case b.is("services are made anew"):
		return b.ServiceSnapshot().List()
	case b.is("lists are not sorted"):
		services = slices.Clone(services)
		slices.Reverse(services)
	case b.is("reads lag"):
		b.mu.Lock()
		defer b.mu.Unlock()
		old := b.services
		b.services = services
		return old
	case b.is("lists change in place"):
		b.mu.Lock()
		defer b.mu.Unlock()
		b.services = append(b.services[:0], services...)
		return b.services
	case b.is("readers take the lock held by handlers"):
		b.held.Lock()
		defer b.held.Unlock()
	case b.is("an empty registry has a service"):
		return append([]*registry.Service{{Hostname: "ghost"}}, services...)
	}
	return services
}

func (b *broken) ServiceSnapshot() *registry.ServiceSet {
	now := b.Registry.ServiceSnapshot()
	b.mu.Lock()
	defer b.mu.Unlock()
	last := b.last
	switch b.fault {
	case "lists are not sorted", "reads lag", "lists change in place", "an empty registry has a service",
		"the youngest wins", "the object name decides", "the last one wins":
		return nil // only what Services and GetService return is broken
	case "snapshots lag":
		b.last = now
		return cmp.Or(last, now)
	case "snapshots are made each time":
		return registry.NewServiceSet(now.List()...)
	case "services are made anew":
		if b.of != now {
			b.of, b.last = now, copied(now)
		}
		return b.last
	case "snapshots change":
		if last != now && len(last.List()) > 0 {
			last.List()[0] = &registry.Service{Hostname: "changed"}
		}
		b.last = now
	}
	return now
}

// copied returns a set of copies of the services.
func copied(set *registry.ServiceSet) *registry.ServiceSet {
	copies := slices.Clone(set.List())
	for i, s := range copies {
		c := *s
		copies[i] = &c
	}
	return registry.NewServiceSet(copies...)
}

func (b *broken) GetService(hostname registry.Hostname) *registry.Service {
	s := b.Registry.GetService(hostname)
	if b.is("services are made anew") {
		return b.ServiceSnapshot().Get(hostname)
	}
	for _, other := range b.Registry.Services() {
		if other.Hostname == hostname && b.prefers(other, s) {
			s = other
		}
	}
	return s
}

// prefers selects the service that a wrong GetService returns, from two services of a host name.
func (b *broken) prefers(s, t *registry.Service) bool {
	switch b.fault {
	case "the youngest wins":
		return s.CreationTime.After(t.CreationTime)
	case "the object name decides":
		return s.Attributes.ObjectName < t.Attributes.ObjectName
	case "the last one wins":
		return registry.ComparePrecedence(s, t) > 0
	default:
		return false
	}
}

func (b *broken) InstancesByPort(s *registry.Service, port uint32) []*registry.ServiceInstance {
	if b.is("ports are ignored") {
		port = 0
	}
	out := b.Registry.InstancesByPort(s, port)
	if b.is("instances are not sorted") {
		slices.Reverse(out)
	}
	return out
}

func (b *broken) GetProxyServiceInstances(p *registry.Proxy) []*registry.ServiceInstance {
	q := *p
	switch {
	case b.is("the first address only"):
		q.IPAddresses = p.IPAddresses[:min(1, len(p.IPAddresses))]
	case b.is("the namespace is ignored"):
		q.Namespace = ""
	case b.is("the namespace is required") && p.Namespace == "":
		return nil
	case b.is("addresses stay"):
		b.mu.Lock()
		defer b.mu.Unlock()
		found := b.Registry.GetProxyServiceInstances(p)
		if len(found) > 0 {
			b.gone = found
		}
		return b.gone
	}
	return b.Registry.GetProxyServiceInstances(&q)
}

func (b *broken) GetProxyWorkloadLabels(p *registry.Proxy) registry.Labels {
	labels := b.Registry.GetProxyWorkloadLabels(p)
	if labels == nil && b.is("everybody is known") {
		return registry.Labels{}
	}
	return labels
}

func (b *broken) NetworkGateways() []registry.NetworkGateway {
	gateways := slices.Clone(b.Registry.NetworkGateways())
	switch {
	case b.is("gateways are not sorted"):
		slices.Reverse(gateways)
	case b.is("accounts of gateways are not sorted"):
		slices.SortStableFunc(gateways, func(g, h registry.NetworkGateway) int {
			return cmp.Or(strings.Compare(g.Network, h.Network), strings.Compare(g.Addr, h.Addr),
				strings.Compare(h.ServiceAccount, g.ServiceAccount))
		})
	}
	return gateways
}

func (b *broken) AppendNetworkGatewayHandler(handler func()) {
	if !b.is("gateway handlers are called for services") {
		b.Registry.AppendNetworkGatewayHandler(handler)
		return
	}
	b.Registry.AppendServiceHandler(func(_, _ *registry.Service, _ registry.Event) { handler() })
	b.Registry.AppendNetworkGatewayHandler(handler)
}

func (b *broken) AppendServiceHandler(handler registry.ServiceHandler) {
	if b.is("no replay to subscribers") {
		b.Registry.AppendServiceHandler(handler)
		return
	}
	b.SubscribeServices(handler)
}

func (b *broken) SubscribeServices(handler registry.ServiceHandler) (cancel func()) {
	if b.is("no replay to subscribers") && len(b.Registry.Services()) > 0 {
		return func() {}
	}
	cancel = b.Registry.SubscribeServices(b.faulty(handler))
	switch {
	case b.is("handlers run in reverse"):
		b.mu.Lock()
		b.handlers = append([]registry.ServiceHandler{handler}, b.handlers...)
		first := len(b.handlers) == 1
		b.mu.Unlock()
		cancel()
		if first {
			return b.Registry.SubscribeServices(b.callAll)
		}
	case b.is("cancel does nothing"):
		return func() {}
	}
	return cancel
}

func (b *broken) SubscribeWorkloads(handler registry.WorkloadHandler) (cancel func()) {
	if b.is("no replay of workloads to subscribers") {
		return func() {}
	}
	return b.Registry.SubscribeWorkloads(handler)
}

func (b *broken) callAll(prev, curr *registry.Service, event registry.Event) {
	b.mu.Lock()
	handlers := slices.Clone(b.handlers)
	b.mu.Unlock()
	for _, h := range handlers {
		h(prev, curr, event)
	}
}

// faulty returns a handler that misses or falsifies events.
func (b *broken) faulty(handler registry.ServiceHandler) registry.ServiceHandler {
	replay := b.is("no replay") && len(b.Registry.Services()) > 0
	return func(prev, curr *registry.Service, event registry.Event) {
		switch {
		case b.is("the first panic is the last call") && b.hasPanicked():
			return
		case replay && event == registry.EventAdd, b.is("deletes are dropped") && event == registry.EventDelete:
			return
		case b.is("adds have a prev") && event == registry.EventAdd,
			b.is("deletes have a prev") && event == registry.EventDelete:
			prev = curr
		case b.is("updates have no prev"):
			prev = nil
		case b.is("curr is a stranger"):
			curr = &registry.Service{Hostname: curr.Hostname, Attributes: curr.Attributes}
		case b.is("handlers run under the lock"), b.is("readers take the lock held by handlers"):
			b.held.Lock()
			defer b.held.Unlock()
		case b.is("handlers run at once"):
			done := make(chan struct{})
			go func() {
				defer close(done)
				handler(prev, curr, event)
			}()
			timer := time.NewTimer(time.Microsecond)
			defer timer.Stop()
			select {
			case <-done:
			case <-timer.C:
			}
			return
		}
		b.note(contract.Panics(func() { handler(prev, curr, event) }))
		if b.is("events are repeated") {
			handler(prev, curr, event)
		}
	}
}

func (b *broken) hasPanicked() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.panicked
}

// note takes notice of whether a handler panicked.
func (b *broken) note(panicked bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.panicked = b.panicked || panicked
}

func (b *broken) AppendWorkloadHandler(handler func(*registry.WorkloadInstance, registry.Event)) {
	replay := b.is("no replay")
	b.Registry.AppendWorkloadHandler(func(w *registry.WorkloadInstance, event registry.Event) {
		switch {
		case replay && event == registry.EventAdd:
			return
		case b.is("workload updates are adds") && event == registry.EventUpdate:
			event = registry.EventAdd
		case b.is("handlers run under the lock"):
			b.held.Lock()
			defer b.held.Unlock()
		}
		handler(w, event)
		if b.is("events are repeated") {
			handler(w, event)
		}
	})
}

func (b *broken) Provider() registry.ProviderID {
	if b.is("no provider") {
		return ""
	}
	return b.Registry.Provider()
}

func (b *broken) HasSynced() bool { return !b.is("never synced") && b.Registry.HasSynced() }

func (b *broken) Run(stop <-chan struct{}) {
	switch {
	case b.is("run returns at once"):
		return
	case b.is("run twice is fine"):
		<-stop
		return
	case b.is("run is deaf"):
		<-b.held.over
		return
	}
	b.Registry.Run(stop)
}

// set is Set, with the faults of what fills a registry.
func (b *broken) set(s *registry.Service, endpoints []*registry.Endpoint) {
	if b.is("handlers run under the lock") {
		b.held.pass()
	}
	if b.is("equal services are updates") {
		renamed := *s
		renamed.Attributes.Labels = registry.Labels{"n": time.Now().String()}
		s = &renamed
	}
	if b.is("endpoints cannot go") && len(endpoints) == 0 {
		_ = b.SetService(s)
		return
	}
	if b.is("endpoints come later") {
		_ = b.SetService(s)
		_ = b.SetEndpoints(s.Hostname, s.Attributes.Namespace, endpoints)
	} else {
		_ = b.Set(s, endpoints)
	}
	if b.is("panics pass") && b.hasPanicked() {
		panic("passed")
	}
}

func (b *broken) remove(hostname registry.Hostname, namespace string) {
	if b.is("services cannot go") {
		return
	}
	_ = b.RemoveService(hostname, namespace)
}

func factory(fault string) registrytest.Factory {
	return func(tb testing.TB) registrytest.Subject {
		tb.Helper()
		b := &broken{Registry: memory.New(memory.Options{}), fault: fault, held: newLock(tb)}
		s := registrytest.Subject{
			Registry: b, Set: b.set, Remove: b.remove,
			SetWorkload: func(w *registry.WorkloadInstance) {
				if b.is("handlers run under the lock") {
					b.held.pass()
				}
				if b.is("equal workloads are updates") {
					w.Endpoint.WorkloadName = time.Now().String()
				}
				_ = b.SetWorkload(w)
			},
			RemoveWorkload: func(namespace, name string) {
				_ = b.RemoveWorkload(registry.WorkloadKey{Namespace: namespace, Name: name})
			},
			SetGateways: b.SetNetworkGateways,
		}
		if fault != "" {
			s.Timeout = 50 * time.Millisecond
		}
		return s
	}
}
