// SPDX-License-Identifier: Apache-2.0

package registrytest

import (
	"slices"
	"testing"
	"time"

	"github.com/pilotkit/pilotkit/internal/test/contract"
	"github.com/pilotkit/pilotkit/registry"
)

// Subject is one fresh, empty registry and the means to change it.
type Subject struct {
	// Registry is what is tested.
	Registry registry.Instance

	// Set makes the registry have a service with exactly these endpoints; it adds
	// the service or replaces that of the same host name and namespace. The suite
	// sets Hostname, Ports, CreationTime, DefaultAddress, Attributes.Namespace,
	// Attributes.Name and Attributes.ObjectName, and of endpoints one IP address,
	// EndpointPort, ServicePort and ServicePortName; an address that has an
	// endpoint on one port has one on each port. Several goroutines call it at
	// once, also for one service. It is required.
	Set func(service *registry.Service, endpoints []*registry.Endpoint)
	// Remove makes the registry not have the service, which it has. It is
	// required.
	Remove func(hostname registry.Hostname, namespace string)

	// SetWorkload adds a workload, or replaces that of the same namespace and
	// name. The suite sets these, no cluster, and, in the endpoint, one IP address
	// and Labels; the registry announces it with at least those labels. Default: the
	// registry announces no workloads.
	SetWorkload func(w *registry.WorkloadInstance)
	// RemoveWorkload removes a workload. It goes with SetWorkload.
	RemoveWorkload func(namespace, name string)

	// SetGateways replaces all network gateways. Default: the registry has none.
	SetGateways func(gateways []registry.NetworkGateway)

	// CatchUp returns when everything that was changed before the call shows in
	// reads and has been delivered to handlers. Set it if a change takes effect later
	// than the function that makes it returns. Default: it does not.
	CatchUp func()

	// Apart says that the source of the registry tells of a service and of its endpoints
	// in objects of their own, as Kubernetes does, so that Set makes two changes. Default:
	// Set makes one.
	Apart bool

	// Running says that the registry has been started already, so that the suite
	// does not call Run. Default: it has not.
	Running bool

	// Timeout is how long the suite waits for something that must happen before
	// it calls it lost or deadlocked. Default: 10 s.
	Timeout time.Duration
}

// Factory makes a Subject. It is called once for each promise; tb.Cleanup ends
// what it started.
type Factory func(tb testing.TB) Subject

// TestInstance proves the promises of registry.Instance.
func TestInstance(t *testing.T, factory Factory) {
	t.Helper()
	contract.Run(t, checks(), setUp(factory))
}

func checks() []check {
	return slices.Concat(readChecks(), snapshotChecks(), proxyChecks(), eventChecks(), handlerChecks(), workloadChecks(),
		gatewayChecks(), lifecycleChecks(), historyChecks())
}
