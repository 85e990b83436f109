// SPDX-License-Identifier: Apache-2.0

// Package registrytest is a conformance suite for registries. It tests the contract of package
// registry:
//
//	func TestMyRegistry(t *testing.T) {
//		registrytest.TestInstance(t, func(tb testing.TB) registrytest.Subject {
//			r := myregistry.New()
//			return registrytest.Subject{Registry: r, Set: r.Set, Remove: r.Remove}
//		})
//	}
//
// Each promise of the contract is a subtest with a registry of its own, so that one broken promise
// does not hide another. A failure names the promise and its place in the documentation.
//
// # Scope
//
// The suite fills the registry through the functions of Subject and checks only the fields that it
// set: of a service its host name, namespace and ports, of an endpoint its address and ports, of a
// workload its name, namespace, address and labels. A registry may add anything else.
//
// # Optional abilities
//
// Optional abilities of a registry are declared in Subject, or found by type assertion:
//
//   - SubscribeServices(registry.ServiceHandler) (cancel func()), and
//     SubscribeWorkloads(registry.WorkloadHandler) (cancel func()).
//   - Subject.SetWorkload: the registry announces workloads.
//   - Subject.SetGateways: the registry has network gateways.
//   - Subject.CatchUp: changes become visible later.
//   - Subject.Apart: services and their endpoints change in two steps.
//
// # Concurrency
//
// The suite starts goroutines and joins them before it returns.
package registrytest
