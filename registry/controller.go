// SPDX-License-Identifier: Apache-2.0

package registry

// ServiceHandler receives a changed service:
//
//	event        | prev             | curr
//	-------------|------------------|-----------------
//	EventAdd     | nil              | the new service
//	EventUpdate  | the one replaced | the new service
//	EventDelete  | nil              | last known state
type ServiceHandler func(prev, curr *Service, event Event)

// WorkloadHandler receives a changed workload. For EventDelete the workload is the last state that
// the handler received.
type WorkloadHandler func(workload *WorkloadInstance, event Event)

// Controller notifies handlers of the changes of a registry. The package comment has the guarantees
// for handlers. Concrete registries also offer Subscribe methods that return a cancel function.
type Controller interface {
	AppendServiceHandler(handler ServiceHandler)
	AppendWorkloadHandler(handler func(workload *WorkloadInstance, event Event))

	// Run works until stop is closed, and returns when all goroutines that it started have ended. A
	// second call panics.
	Run(stop <-chan struct{})

	// HasSynced reports whether the registry has the initial state of its source.
	HasSynced() bool
}

// Instance is one registry: its content, its events, and its identity.
type Instance interface {
	Controller
	ServiceDiscovery
	Provider() ProviderID
	Cluster() ClusterID
}
