// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"

	"github.com/pilotkit/pilotkit/internal/wrapper"
)

// As finds an ability of a registry, or of a part of one. It returns thing itself if it is a T, or
// else the first T among the things that it wraps. T is an optional interface such as Subscriber. A
// wrapper has one of the methods
//
//	Unwrap() registry.Instance
//	Unwrap() []any
//
// if callers may use the wrapped things directly. Several things are searched in order. A wrapper
// that changes calls or results must not have the method, or must have the affected abilities
// itself. A nil thing has no abilities.
func As[T any](thing any) (ability T, ok bool) { return wrapper.As[T, Instance](thing) }

// Subscriber is the optional ability of a Controller to end registrations. The methods are those of
// Controller, but return a cancel function. After cancel has returned, no call of the handler
// begins. cancel may be called many times, from any goroutine. Find the ability with As.
type Subscriber interface {
	SubscribeServices(handler ServiceHandler) (cancel func())
	SubscribeWorkloads(handler WorkloadHandler) (cancel func())
}

// GatewaySubscriber is the optional ability of a ServiceDiscovery to end the registration of a
// gateway handler, as in Subscriber. Find it with As.
type GatewaySubscriber interface {
	SubscribeNetworkGateways(handler func()) (cancel func())
}

// WorkloadReceiver is the optional ability of a registry to select the workloads of other
// registries: WorkloadInstanceHandler has to be registered there as a WorkloadHandler. Find it with
// As.
type WorkloadReceiver interface {
	WorkloadInstanceHandler(workload *WorkloadInstance, event Event)
}

// PodExplainer is the optional ability of a registry of pods to explain whether a pod is an
// endpoint of a service. Find it with As.
type PodExplainer interface {
	// Explain explains why a pod is, or is not, an endpoint of a service, after all pending events
	// have been handled. The error is that of ctx, or reports that the registry has stopped.
	// Handlers and the updater must not call it.
	Explain(ctx context.Context, hostname Hostname, namespace, pod string) (PodExplanation, error)
}

// PodExplanation explains the relation of a pod to a service.
type PodExplanation struct {
	// Endpoints are the service's endpoints on the pod, empty if the pod is not an endpoint. They
	// must not be modified.
	Endpoints []*Endpoint
	// Reasons explain why the pod is not an endpoint, or why an endpoint of it is not used or not
	// shown, in the order in which an operator would look.
	Reasons []string
}
