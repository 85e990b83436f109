// SPDX-License-Identifier: Apache-2.0

// Package ingress converts the Ingresses of Kubernetes (networking.k8s.io/v1) into the
// Gateways and VirtualServices of Istio.
//
// A Converter is the conversion alone: a value that takes changes of objects and gives
// snapshots, without a cluster, goroutines or locks. What it has made after any history is
// what a new one makes of the same objects.
//
//	c := ingress.NewConverter(ingress.Options{})
//	update := c.Apply(ingress.SetMesh(mesh), ingress.Set(class), ingress.Set(anIngress))
//	for _, config := range update.After.Configs(istio.VirtualService) { ... }
//
// # What becomes of an Ingress
//
// An Ingress is ours if its annotation kubernetes.io/ingress.class is Mesh.Class; without
// the annotation, if the IngressClass that it names exists and has the controller
// ControllerName; and if it names none, in mode DEFAULT. A default IngressClass has no
// meaning, and in mode OFF none is ours.
//
//   - Each of ours has a Gateway in Options.Namespace, which selects the pods with the label
//     istio that Mesh names: a server for each entry of tls with a Secret, and one for all
//     hosts on port 80.
//   - Each host has one VirtualService, of all Ingresses that name it, for their Gateways. It
//     is in the namespace of the first of these: the oldest, then by name and namespace.
//     Longer paths come first, exact ones before prefixes of their length, then those that
//     match everything, and last the default backends of the Ingresses, which are those of
//     the host "*", too. Otherwise the order is that of the Ingresses and of their rules.
//   - A path of type ImplementationSpecific is a prefix if it ends in "/*" or ".*",
//     everything if it is empty, "*", "/*" or ".*", and otherwise exact. VirtualServices have
//     the annotation internal.istio.io/route-semantics: ingress, by which xdsupdate/traffic
//     has prefixes match whole elements of paths.
//   - A backend whose port is a name needs its Service. One that cannot be resolved, or is no
//     Service, has no route, and is one of Snapshot.Problems.
//   - The status of all of ours is the address of the Service Mesh.Service in
//     Options.Namespace, or, if Mesh names none, the external addresses of the node of a pod
//     that the Gateways select.
//
// In conflicts configs come before those that others have written: their creation time is the
// beginning of 1970, for wildcards some seconds later, so that on a server whose hosts several
// VirtualServices cover the routes of the most specific one come first. Istio's have none.
// Names, and what is not said here, are as in Istio 1.30, but for the following: an IngressClass that does not exist is none of ours, OFF means none, default
// backends have routes, a VirtualService is for the Gateways of all Ingresses of its host,
// different hosts have different VirtualServices, and none is without routes.
//
// # In a cluster
//
// A Cache follows the objects of an API server, and shows what becomes of them as a
// ConfigStoreCache that takes no writes. A StatusWriter writes the statuses, in one of many
// processes.
//
//	ingresses, err := ingress.New(restConfig, ingress.CacheOptions{})
//	statuses, err := ingress.NewStatusWriter(ingresses, restConfig, kube.StatusOptions{Lease: "ingress-status", LeaseNamespace: "istio-system"})
//	configs := aggregate.MakeCache(resources, ingresses)
//	go statuses.Run(stop)
//	go configs.Run(stop) // and with it the caches
//
// A Cache needs the verbs list and watch for ingresses and ingressclasses of
// networking.k8s.io, services and nodes in all namespaces, and for pods in
// Options.Namespace.
//
// # Cost
//
// One changed Ingress costs the work of its hosts, one changed port of a Service that of
// the hosts of the Ingresses that name it, and one changed address nothing but the list of
// Ingresses whose status it is.
package ingress
