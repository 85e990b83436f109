// SPDX-License-Identifier: Apache-2.0

package registrytest

import (
	"slices"
	"testing"
	"time"

	"github.com/pilotkit/pilotkit/internal/test/contract"
	"github.com/pilotkit/pilotkit/registry"
)

// Subject is one new, empty registry and the means to change it.
type Subject struct {
	// Registry is the registry under test.
	Registry registry.Instance

	// Set adds a service with exactly these endpoints, or replaces the service of the same host
	// name and namespace. The suite sets Hostname, Ports, CreationTime, DefaultAddress,
	// Attributes.Namespace, Attributes.Name and Attributes.ObjectName, and of endpoints one IP
	// address, EndpointPort, ServicePort and ServicePortName. An address with an endpoint on one
	// port has one on each port. Several goroutines call Set concurrently, also for one service. It
	// is required.
	Set func(service *registry.Service, endpoints []*registry.Endpoint)
	// Remove removes a service that the registry has. It is required.
	Remove func(hostname registry.Hostname, namespace string)

	// SetWorkload adds a workload, or replaces the workload of the same namespace and name. The
	// suite sets these, no cluster, and, in the endpoint, one IP address and Labels. The registry
	// must announce the workload with at least those labels. Nil means that the registry announces
	// no workloads.
	SetWorkload func(w *registry.WorkloadInstance)
	// RemoveWorkload removes a workload. It is required with SetWorkload.
	RemoveWorkload func(namespace, name string)

	// SetGateways replaces all network gateways. Nil means that the registry has none.
	SetGateways func(gateways []registry.NetworkGateway)

	// CatchUp returns when all earlier changes are visible to reads and have been delivered to
	// handlers. Set it if changes take effect after the function that makes them has returned. Nil
	// means that they take effect before.
	CatchUp func()

	// Apart is set if the source of the registry has services and their endpoints in separate
	// objects, as Kubernetes does, so that Set makes two changes. By default Set makes one.
	Apart bool

	// Running is set if the registry runs already, so that the suite does not call Run.
	Running bool

	// Timeout is the time after which the suite reports an expected event as lost or deadlocked.
	// The default is 10 s.
	Timeout time.Duration
}

// Factory creates a Subject. It is called once for each promise. It must register the cleanup of
// the Subject with tb.Cleanup.
type Factory func(tb testing.TB) Subject

// TestInstance tests the contract of registry.Instance.
func TestInstance(t *testing.T, factory Factory) {
	t.Helper()
	contract.Run(t, checks(), setUp(factory))
}

func checks() []check {
	return slices.Concat(readChecks(), snapshotChecks(), proxyChecks(), eventChecks(), handlerChecks(), workloadChecks(),
		gatewayChecks(), lifecycleChecks(), historyChecks())
}
