// SPDX-License-Identifier: Apache-2.0

package registry

import "github.com/pilotkit/pilotkit/internal/wrapper"

// As returns an ability of a registry, or of a part of one: thing itself as a T, or else
// the first T of those that it wraps. T is an optional interface such as Subscriber. A
// wrapper declares by one of the methods
//
//	Unwrap() registry.Instance
//	Unwrap() []any
//
// that a caller may talk to what it wraps directly, to several things in their
// order. One that changes what it passes on must not have it, or must have the
// affected abilities itself. A nil thing has no abilities.
func As[T any](thing any) (ability T, ok bool) { return wrapper.As[T, Instance](thing) }

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
