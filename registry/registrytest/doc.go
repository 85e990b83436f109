// SPDX-License-Identifier: Apache-2.0

// Package registrytest proves that a registry keeps the promises of package
// registry:
//
//	func TestMyRegistry(t *testing.T) {
//		registrytest.TestInstance(t, func(tb testing.TB) registrytest.Subject {
//			r := myregistry.New()
//			return registrytest.Subject{Registry: r, Set: r.Set, Remove: r.Remove}
//		})
//	}
//
// Each promise is a subtest with a registry of its own, so that one broken
// promise does not hide another. A failure names the promise and where it is
// made.
//
// # What the suite changes and sees
//
// The suite fills the registry through the functions of Subject and looks only
// at what it asked for: of a service its host name, namespace and ports, of an
// endpoint its address and ports, of a workload its name, namespace, address
// and labels. Whatever else a registry adds is its own affair.
//
// # Optional abilities
//
// What a registry may or may not be able to do is declared in Subject, or found
// by type assertion:
//
//   - SubscribeServices(registry.ServiceHandler) (cancel func()), and
//     SubscribeWorkloads(registry.WorkloadHandler) (cancel func()).
//   - Subject.SetWorkload: the registry announces workloads.
//   - Subject.SetGateways: it has network gateways.
//   - Subject.CatchUp: what was changed shows later.
//   - Subject.Apart: services and their endpoints change in two steps.
//
// # Concurrency
//
// The suite starts goroutines and has
// joined them when it returns.
package registrytest
