// SPDX-License-Identifier: Apache-2.0

// Package ingress converts the Ingresses of Kubernetes (networking.k8s.io/v1) into the Gateways and
// VirtualServices of Istio.
//
// A Converter is the conversion alone: a value that applies changes of objects and returns
// snapshots, without a cluster, goroutines or locks. Its result depends only on the present
// objects, not on their history.
//
//	c := ingress.NewConverter(ingress.Options{})
//	update := c.Apply(ingress.SetMesh(mesh), ingress.Set(class), ingress.Set(anIngress))
//	for _, config := range update.After.Configs(istio.VirtualService) { ... }
//
// # Results
//
// An Ingress is ours if its annotation kubernetes.io/ingress.class is Mesh.Class. Without the
// annotation, it is ours if its IngressClass exists and has the controller ControllerName, or, if
// it has no class, in mode DEFAULT. A default IngressClass is ignored, and in mode OFF no Ingress
// is ours.
//
//   - Each of our Ingresses has a Gateway in Options.Namespace, which selects the pods with the
//     label istio of Mesh: a server for each entry of tls with a Secret, and one server for all
//     hosts on port 80.
//   - Each host has one VirtualService, from all Ingresses with that host, for their Gateways. It
//     is in the namespace of the first of these Ingresses: the oldest, then by name and namespace.
//     Longer paths come first, then exact paths before prefixes of the same length, then routes
//     that match everything, and last the default backends of the Ingresses, which also serve the
//     host "*". Other routes stay in the order of the Ingresses and of their rules.
//   - A path of type ImplementationSpecific is a prefix if it ends in "/*" or ".*", matches
//     everything if it is empty, "*", "/*" or ".*", and is exact otherwise. VirtualServices have
//     the annotation internal.istio.io/route-semantics: ingress, which makes xdsupdate/traffic
//     match whole path elements of prefixes.
//   - A backend with a named port needs its Service. A backend that cannot be resolved, or that is
//     not a Service, has no route, and Snapshot.Problems reports it.
//   - The status of all our Ingresses is the address of the Service Mesh.Service in
//     Options.Namespace, or, if Mesh has no Service, the external addresses of the node of a pod
//     that the Gateways select.
//
// In conflicts these configs take precedence over configs of users, because their creation time is
// the beginning of 1970. For wildcard hosts it is some seconds later, so that on a server whose
// hosts are covered by several VirtualServices the routes of the most specific one come first.
// Istio's configs have no creation time. Names, and any behaviour that is not described here, are
// as in Istio 1.30, with these differences: an Ingress whose IngressClass does not exist is not
// ours, mode OFF disables all Ingresses, default backends have routes, a VirtualService is for the
// Gateways of all Ingresses of its host, different hosts have different VirtualServices, and every
// VirtualService has routes.
//
// # In a cluster
//
// A Cache watches the objects of an API server, and publishes the resulting configs as a read-only
// ConfigStoreCache. A StatusWriter writes the statuses; a Lease elects the one process that writes.
//
//	ingresses, err := ingress.New(restConfig, ingress.CacheOptions{})
//	statuses, err := ingress.NewStatusWriter(ingresses, restConfig, kube.StatusOptions{Lease: "ingress-status", LeaseNamespace: "istio-system"})
//	configs := aggregate.MakeCache(resources, ingresses)
//	go statuses.Run(stop)
//	go configs.Run(stop) // and with it the caches
//
// A Cache needs the verbs list and watch for ingresses and ingressclasses of networking.k8s.io,
// services and nodes in all namespaces, and for pods in Options.Namespace.
//
// # Cost
//
// A changed Ingress costs the recomputation of its hosts. A changed port of a Service costs that of
// the hosts of the Ingresses that reference a port of the Service by name. A changed address costs
// only the list of the Ingresses with that status.
package ingress
