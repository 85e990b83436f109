// SPDX-License-Identifier: Apache-2.0

package registry

import "go.uber.org/atomic"

// Simple makes an Instance from its parts. It has the abilities of its parts, each from the part to
// which it belongs. The method of each ability documents its fallback if the part lacks the
// ability.
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

// Unwrap returns the parts, so that As finds abilities that Simple does not know. If both parts
// have an ability, the Controller's is used, because it sends the events.
func (s Simple) Unwrap() []any { return []any{s.Controller, s.ServiceDiscovery} }

// ServiceSnapshot returns the snapshot of the ServiceDiscovery, nil if it has none.
func (s Simple) ServiceSnapshot() *ServiceSet {
	if snapshotter, ok := As[ServiceSnapshotter](s.ServiceDiscovery); ok {
		return snapshotter.ServiceSnapshot()
	}
	return nil
}

// SubscribeServices subscribes to the Controller. If that has no Subscriber, it uses
// AppendServiceHandler; then a cancelled handler stays registered, but is not called.
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

// SubscribeWorkloads subscribes to the Controller, with the fallback of SubscribeServices to
// AppendWorkloadHandler.
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

// SubscribeNetworkGateways subscribes to the ServiceDiscovery, with the fallback of
// SubscribeServices to AppendNetworkGatewayHandler.
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

// WorkloadInstanceHandler calls the handler of the Controller. It does nothing if that has none.
func (s Simple) WorkloadInstanceHandler(workload *WorkloadInstance, event Event) {
	if receiver, ok := As[WorkloadReceiver](s.Controller); ok {
		receiver.WorkloadInstanceHandler(workload, event)
	}
}
