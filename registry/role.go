// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"

	"github.com/pilotkit/pilotkit/internal/wrapper"
)

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

// PodExplainer is the optional ability of a registry of pods to say what one is to a
// service. Find it with As.
type PodExplainer interface {
	// Explain says why a pod is, or is not, an endpoint of a service, as of when everything
	// that is waiting has been handled. The error is that of ctx, or that the registry does not
	// run any more. Handlers and the updater must not call it.
	Explain(ctx context.Context, hostname Hostname, namespace, pod string) (PodExplanation, error)
}

// PodExplanation says what a pod is to a service, and why.
type PodExplanation struct {
	// Endpoints are those of the service that are of the pod; none if it is no
	// endpoint. They must not be modified.
	Endpoints []*Endpoint
	// Reasons say why the pod is no endpoint, or why an endpoint of it is not used or
	// not shown; in the order in which an operator would look.
	Reasons []string
}
