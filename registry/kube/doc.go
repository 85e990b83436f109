// SPDX-License-Identifier: Apache-2.0

// Package kube is the registry of a Kubernetes cluster: its Services with the endpoints in
// EndpointSlices, its Pods as workloads that others may select, and its gateways to other networks.
// It is a module of its own, so that the core does not depend on Kubernetes.
//
//	registries := aggregate.NewController()
//	server := ads.New(registries)
//	registries.AddRegistryAndRun(func(updater xdsupdate.XDSUpdater) registry.Instance {
//		return kube.New(client, updater, kube.Options{ClusterID: "east"})
//	}, stop)
//
// # Content
//
// The registry has the results of Istio's Kubernetes registry, with one additional rule: the
// content and the reports of the registry are a function of the current objects, and of the mesh,
// never of the order of events. Where Istio's results depend on the past, the rule decides:
//
//   - An endpoint is shown as long as a slice lists it, its service exists and is exported to some
//     namespace, and its target exists if it has one. It has the current labels, identity, locality
//     and network of its pod, node and mesh.
//   - Of several endpoints with one address and port name, the first healthy one is used, in the order
//     of the names of the slices.
//   - An endpoint without a target has the identity of the ready pod at its address. Of several pods
//     it is the one with an address of its own, then the oldest, then the first by name.
//   - The gateways follow from the current labels, addresses and nodes.
//   - Namespaces that the mesh does not select are ignored. If the mesh selects namespaces, deleted
//     ones are ignored, too.
//
// Workloads of other registries, which it receives as a [registry.WorkloadReceiver], are endpoints
// of the services that select them by their labels.
//
// # Sources
//
// Run lists and watches Services, EndpointSlices, Pods (except failed ones), Nodes and Namespaces,
// each through a reflector of client-go, which relists after errors; objects that are missing in a
// relist are deleted. If a kind becomes unreadable, its objects stay as they were. HasSynced waits
// for a kind that was never readable, unless Options.Optional names it. The registry does not poll,
// and there is no second copy of the objects: only the used fields of each object stay in memory.
//
// # Events
//
// All events are ordered in one queue and handled in batches: the pending events produce one new
// state, which becomes visible to readers at once and as a whole. It becomes visible in one batch
// of the updater (xdsupdate.BatchUpdater) with the calls that report it, in the order SvcUpdate,
// EDSUpdate, ConfigUpdate. After that follow ProxyUpdate and the handlers of services, workloads
// and gateways. Unchanged objects are not reported. The cost of an event is proportional to its
// effects: for one endpoint of a slice, the registry looks at the endpoints of that slice.
//
// # Concurrency
//
// Every method is safe for concurrent use and, except for Flush, may be called by handlers and the
// updater. Readers take no lock. The updater and the handlers are called one at a time and with no
// lock held, by the goroutine in Run, Drain or Flush.
package kube
