// SPDX-License-Identifier: Apache-2.0

// Package kube is the registry of a Kubernetes cluster: its Services with the
// endpoints in EndpointSlices, its Pods as workloads that others may select, and
// its gateways to other networks. It is a module of its own, so that nothing of
// Kubernetes is in the dependencies of the core.
//
//	registries := aggregate.NewController()
//	server := ads.New(registries)
//	registries.AddRegistryAndRun(func(updater xdsupdate.XDSUpdater) registry.Instance {
//		return kube.New(client, updater, kube.Options{ClusterID: "east"})
//	}, stop)
//
// # What it shows
//
// The results are those of Istio's Kubernetes registry, with one rule on top: what
// the registry holds and reports is a function of the objects that exist now, and
// of the mesh, never of the order in which they were seen. Where Istio's depends on
// the past, the rule decides:
//
//   - an endpoint is shown as long as a slice lists it, its service exists and is
//     exported to somebody, and its target exists if it names one; it has the labels,
//     identity, locality and network of its pod, node and mesh as they are now;
//   - of several endpoints with one address and port name the first healthy one by the
//     name of its slice counts;
//   - an endpoint without a target has the identity of the ready pod at its address, of
//     several the one with an address of its own, then the oldest, then the first by
//     name;
//   - gateways are what the labels, the addresses and the nodes give now;
//   - namespaces that the mesh does not select, or that are gone while it selects any,
//     do not exist.
//
// Workloads of other registries, which it takes as a [registry.WorkloadReceiver], are
// endpoints of the services that select them by their labels.
//
// # What it reads
//
// Run lists and watches Services, EndpointSlices, Pods (but those that have
// failed), Nodes and Namespaces, each through a reflector of client-go, which
// relists after errors; what a relist lacks is gone. What may not be read stays as it
// was, and keeps HasSynced waiting if it never was read, unless Options.Optional names
// the kind. Nothing is polled, and no
// second copy of the objects is kept: of each object only what is used stays in
// memory.
//
// # Events
//
// Everything that happens is put into one order and handled in batches: what is
// waiting becomes one new state, which readers see at once and as a whole. It
// becomes visible in one batch of the updater (xdsupdate.BatchUpdater) with the
// calls that report it, in the order SvcUpdate, EDSUpdate, ConfigUpdate. ProxyUpdate
// follows, and after it the handlers of services, workloads and gateways are
// notified. What did not change is not reported. A change costs what it changes: one
// endpoint of a slice costs a look at the endpoints of that slice.
//
// # Concurrency
//
// Every method may be called from any goroutine and, but for Flush, from within
// handlers and the updater. Readers take no lock. The updater and the handlers are
// called one at a time and with no lock held, by the goroutine in Run, Drain or
// Flush.
package kube
