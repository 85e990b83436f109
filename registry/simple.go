// SPDX-License-Identifier: Apache-2.0

package registry

import "go.uber.org/atomic"

// Simple makes an Instance of its parts. It has the abilities of its parts, each
// of the part to which it belongs; where a part lacks one, its method says how it
// does without.
type Simple struct {
	Controller
	ServiceDiscovery
	ProviderID ProviderID
	ClusterID  ClusterID
}

var (
	_ Instance           = Simple{}
	_ Subscriber         = Simple{}
	_ GatewaySubscriber  = Simple{}
	_ ServiceSnapshotter = Simple{}
	_ WorkloadReceiver   = Simple{}
)

// Provider returns ProviderID.
func (s Simple) Provider() ProviderID { return s.ProviderID }

// Cluster returns ClusterID.
func (s Simple) Cluster() ClusterID { return s.ClusterID }

// Unwrap returns the parts, for As: for abilities that Simple does not know. If both
// have one, that of the Controller is meant, from which the events come.
func (s Simple) Unwrap() []any { return []any{s.Controller, s.ServiceDiscovery} }

// ServiceSnapshot is that of the ServiceDiscovery; nil if it has none.
func (s Simple) ServiceSnapshot() *ServiceSet {
	if snapshotter, ok := As[ServiceSnapshotter](s.ServiceDiscovery); ok {
		return snapshotter.ServiceSnapshot()
	}
	return nil
}

// SubscribeServices is that of the Controller, or else AppendServiceHandler: then
// a cancelled handler stays registered, and is not called.
func (s Simple) SubscribeServices(handler ServiceHandler) (cancel func()) {
	if subscriber, ok := As[Subscriber](s.Controller); ok {
		return subscriber.SubscribeServices(handler)
	}
	var cancelled atomic.Bool
	s.AppendServiceHandler(func(prev, curr *Service, event Event) {
		if !cancelled.Load() {
			handler(prev, curr, event)
		}
	})
	return func() { cancelled.Store(true) }
}

// SubscribeWorkloads is that of the Controller, or else AppendWorkloadHandler, as
// in SubscribeServices.
func (s Simple) SubscribeWorkloads(handler WorkloadHandler) (cancel func()) {
	if subscriber, ok := As[Subscriber](s.Controller); ok {
		return subscriber.SubscribeWorkloads(handler)
	}
	var cancelled atomic.Bool
	s.AppendWorkloadHandler(func(workload *WorkloadInstance, event Event) {
		if !cancelled.Load() {
			handler(workload, event)
		}
	})
	return func() { cancelled.Store(true) }
}

// SubscribeNetworkGateways is that of the ServiceDiscovery, or else
// AppendNetworkGatewayHandler, as in SubscribeServices.
func (s Simple) SubscribeNetworkGateways(handler func()) (cancel func()) {
	if subscriber, ok := As[GatewaySubscriber](s.ServiceDiscovery); ok {
		return subscriber.SubscribeNetworkGateways(handler)
	}
	var cancelled atomic.Bool
	s.AppendNetworkGatewayHandler(func() {
		if !cancelled.Load() {
			handler()
		}
	})
	return func() { cancelled.Store(true) }
}

// WorkloadInstanceHandler is that of the Controller; without one nothing happens.
func (s Simple) WorkloadInstanceHandler(workload *WorkloadInstance, event Event) {
	if receiver, ok := As[WorkloadReceiver](s.Controller); ok {
		receiver.WorkloadInstanceHandler(workload, event)
	}
}
