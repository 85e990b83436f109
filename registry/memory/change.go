// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"iter"
	"slices"
	"time"

	"github.com/pilotkit/pilotkit/internal/cow"
	"github.com/pilotkit/pilotkit/internal/notify"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// change is what a commit has to report, in at most one of the fields after state.
// state is that after the commit; handlers do not get it.
type change struct {
	state     *state
	service   *serviceChange
	endpoints *endpointsChange
	workload  *workloadChange
	gateways  bool
}

// serviceChange has the arguments of a registry.ServiceHandler.
type serviceChange struct {
	prev, curr *registry.Service
	event      registry.Event
}

type endpointsChange struct {
	service   *registry.Service
	endpoints cow.Sorted[*registry.Endpoint]
	changes   []xdsupdate.EndpointChange
}

// workloadChange has the arguments of a registry.WorkloadHandler, and the
// addresses of the proxies to be pushed.
type workloadChange struct {
	curr    *registry.WorkloadInstance
	event   registry.Event
	proxies []string
}

// update calls the updater for a change, but for its proxies.
func (r *Registry) update(c change) {
	switch {
	case c.service != nil:
		k := keyOf(c.service.curr)
		r.call(func() { r.opts.Updater.SvcUpdate(r.shard, k.hostname, k.namespace, c.service.event) })
		r.push(k, xdsupdate.ReasonService)
	case c.endpoints != nil:
		r.updateEndpoints(c.endpoints)
	}
}

func (r *Registry) updateProxies(c change) {
	for _, ip := range c.workload.proxies {
		r.call(func() { r.opts.Updater.ProxyUpdate(r.opts.Cluster, ip) })
	}
}

func (r *Registry) updateEndpoints(c *endpointsChange) {
	k := keyOf(c.service)
	// What comes first is complete, so that it takes the place of what a registry
	// before has left in the shard.
	r.call(func() {
		if r.deltas == nil || c.endpoints.Len() <= len(c.changes) {
			r.opts.Updater.EDSUpdate(r.shard, k.hostname, k.namespace, c.endpoints.Slice())
		} else {
			r.deltas.EDSDeltaUpdate(r.shard, k.hostname, k.namespace, c.changes)
		}
	})
	if c.service.Resolution.IsDNS() {
		r.push(k, xdsupdate.ReasonEndpoint)
	}
}

// push asks for a push of a service.
func (r *Registry) push(k serviceKey, reason xdsupdate.TriggerReason) {
	r.call(func() {
		r.opts.Updater.ConfigUpdate(&xdsupdate.PushRequest{
			Full:           true,
			ConfigsUpdated: xdsupdate.KeySet(xdsupdate.ServiceKey(k.hostname, k.namespace)),
			Reason:         map[xdsupdate.TriggerReason]int{reason: 1},
			Start:          time.Now(),
		})
	})
}

// SubscribeServices implements registry.Subscriber.
func (r *Registry) SubscribeServices(handler registry.ServiceHandler) (cancel func()) {
	return r.subscribe(func(s *state) notify.Subscription[change] {
		return notify.Subscription[change]{
			Wants:  func(c change) bool { return c.service != nil },
			Handle: func(c change) { handler(c.service.prev, c.service.curr, c.service.event) },
			Replay: s.serviceAdds(),
		}
	})
}

// SubscribeWorkloads implements registry.Subscriber.
func (r *Registry) SubscribeWorkloads(handler registry.WorkloadHandler) (cancel func()) {
	return r.subscribe(func(s *state) notify.Subscription[change] {
		return notify.Subscription[change]{
			Wants:  func(c change) bool { return c.workload != nil },
			Handle: func(c change) { handler(c.workload.curr, c.workload.event) },
			Replay: s.workloadAdds(),
		}
	})
}

// SubscribeNetworkGateways implements registry.GatewaySubscriber.
func (r *Registry) SubscribeNetworkGateways(handler func()) (cancel func()) {
	return r.subscribe(func(*state) notify.Subscription[change] {
		return notify.Subscription[change]{
			Wants:  func(c change) bool { return c.gateways },
			Handle: func(change) { handler() },
		}
	})
}

// AppendServiceHandler adds a handler of service changes. It first gets the
// services that are there.
func (r *Registry) AppendServiceHandler(handler registry.ServiceHandler) {
	r.SubscribeServices(handler)
}

// AppendWorkloadHandler adds a handler of workload changes. It first gets the
// workloads that are there.
func (r *Registry) AppendWorkloadHandler(handler func(*registry.WorkloadInstance, registry.Event)) {
	r.SubscribeWorkloads(handler)
}

// AppendNetworkGatewayHandler adds a function that is called after the gateways
// have changed.
func (r *Registry) AppendNetworkGatewayHandler(handler func()) { r.SubscribeNetworkGateways(handler) }

// subscribe registers a handler with the state that belongs to its place in the
// queue.
func (r *Registry) subscribe(subscription func(*state) notify.Subscription[change]) (cancel func()) {
	r.mu.Lock()
	cancel = r.queue.Subscribe(subscription(r.reported))
	r.mu.Unlock()
	r.queue.Drain()
	return cancel
}

// serviceAdds yields an add for each service, in the order of Services.
func (s *state) serviceAdds() iter.Seq[change] {
	return func(yield func(change) bool) {
		for _, service := range s.services.List() {
			if !yield(change{service: &serviceChange{curr: service, event: registry.EventAdd}}) {
				return
			}
		}
	}
}

// workloadAdds yields an add for each workload, in the order of registry.CompareWorkloads.
func (s *state) workloadAdds() iter.Seq[change] {
	return func(yield func(change) bool) {
		all := make([]*registry.WorkloadInstance, 0, s.workloads.Len())
		for _, w := range s.workloads.All() {
			all = append(all, w)
		}
		slices.SortFunc(all, registry.CompareWorkloads)
		for _, w := range all {
			if !yield(change{workload: &workloadChange{curr: w, event: registry.EventAdd}}) {
				return
			}
		}
	}
}
