// SPDX-License-Identifier: Apache-2.0

package registry

// As finds an ability of a registry, of a part of one or of whatever else:
// thing itself if it has the ability, or else the first that has it of what thing
// wraps. A wrapper declares by a method
//
//	Unwrap() registry.Instance
//
// that a caller may talk to what it wraps directly. One that changes what it
// passes on must not have it, or must have the affected abilities itself.
func As[T any](thing any) (ability T, ok bool) {
	for thing != nil {
		if ability, ok = thing.(T); ok {
			return ability, true
		}
		wrapper, wraps := thing.(interface{ Unwrap() Instance })
		if !wraps {
			break
		}
		thing = wrapper.Unwrap()
	}
	return ability, false
}

// Subscriber is the optional ability of a Controller to end registrations: the
// methods are those of Controller, but return a function after whose return no
// call of the handler begins. cancel may be called many times, from anywhere.
// Find it with As.
type Subscriber interface {
	SubscribeServices(handler ServiceHandler) (cancel func())
	SubscribeWorkloads(handler WorkloadHandler) (cancel func())
}

// GatewaySubscriber is the optional ability of a ServiceDiscovery to end the
// registration of a gateway handler, as in Subscriber. Find it with As.
type GatewaySubscriber interface {
	SubscribeNetworkGateways(handler func()) (cancel func())
}

// WorkloadReceiver is the optional ability of a registry to select the workloads
// of other registries: WorkloadInstanceHandler is a WorkloadHandler of theirs.
// Find it with As.
type WorkloadReceiver interface {
	WorkloadInstanceHandler(workload *WorkloadInstance, event Event)
}
