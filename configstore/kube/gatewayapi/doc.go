// SPDX-License-Identifier: Apache-2.0

// Package gatewayapi converts the objects of the Kubernetes Gateway API (v1.6) into the
// Gateways, VirtualServices and DestinationRules of Istio, and into statuses.
//
// A Converter is the conversion alone: a value that takes changes of objects and gives
// snapshots, without a cluster, goroutines or locks. What it has made after any history is
// what a new one makes of the same objects.
//
//	c := gatewayapi.NewConverter()
//	update := c.Apply(gatewayapi.Set(gateway), gatewayapi.Set(route), gatewayapi.Set(service))
//	for _, config := range update.After.Configs(istio.VirtualService) { ... }
//	for _, key := range update.Statuses { write(key, update.After.Status(key)) }
//
// A Cache does that for whatever keeps the objects as configs (Schemas), and shows what becomes of
// them as a ConfigStoreCache that takes no writes. With an API server, package cluster does all
// of it, and writes the statuses. Without one, a directory does:
//
//	objects := memory.NewController(memory.Make(gatewayapi.DirectorySchemas().Union(istio.Schemas())))
//	files := file.New("config", objects.Store)
//	gateways := gatewayapi.NewCache(objects, gatewayapi.CacheOptions{Infrastructure: host})
//	configs := aggregate.MakeCache(objects, gateways)
//
// Statuses are values there: Snapshot.Status. Backends are hosts of ServiceEntries, of kind
// Hostname and group networking.istio.io; a Service counts too, if a ServiceEntry of its host has
// the endpoints.
//
// # What the host does
//
// It runs the proxies, as Options.Provided and the interface Infrastructure say; a Gateway takes the
// addresses and the readiness into its status from there. Proxies of a Gateway have its namespace
// and the label gateway.networking.k8s.io/gateway-name. What proxies refuse comes back by
// package refusals. The certificates that servers name (kubernetes-gateway://NAMESPACE/NAME), and the
// authorities (the same with -cacert, or configmap://NAMESPACE/NAME-cacert), have to be served
// with xdsupdate/secrets.
//
// # Which objects
//
// The kinds of Object. A Gateway is ours if its GatewayClass has the controller
// ControllerName, or if it is of the class istio and there is no object of this name. Those
// of istio-remote, and of classes of the controller istio.io/unmanaged-gateway, are taken, but
// have no configs. Everything else is as the API server stores it, with the defaults of the
// Gateway API; where they are missing, they are assumed. What no API server would have let
// through (a listener without a port, a backend without a name) is a condition of its object.
//
// # What becomes of them
//
//   - Each listener of a Gateway or ListenerSet that works is a Gateway config in the
//     namespace of its object, with one server. Its hosts say from which namespaces it has
//     VirtualServices. Within a Gateway all listeners of a conflict are refused; between a
//     Gateway and its ListenerSets, and among these, the first one wins.
//   - HTTPRoutes and GRPCRoutes are joined: one VirtualService for each listener and host, in
//     the namespace of its first route, with the rules of all routes in the order of
//     precedence of the specification. A host that a nearer listener of the same port and
//     protocol has is served there alone. For Services and ServiceEntries there is one for each
//     namespace of routes, host and port, of the gateway mesh.
//   - TCPRoutes and TLSRoutes are VirtualServices of their own. Of several for one listener,
//     or one host, the oldest counts in the end: VirtualServices have its creation time.
//   - A rule with a filter that is not supported, or with control characters, is answered with 500, and
//     one with a regular expression that does not compile is left out; the status says so, and the other rules
//     stay. A backend that may not be used is the empty destination, which the proxy answers
//     with 500; one that does not exist keeps its name, and works once it does.
//   - A route of another namespace than its Service's, in the mesh, is for clients of its own namespace.
//   - BackendTLSPolicies of a Service or ServiceEntry are a DestinationRule for each of its hosts, and fill in what
//     DestinationRules of users leave open. Without subjectAltNames servers
//     must have the hostname, which is its sni (xdsupdate/traffic sees to that). Without an authority that can be
//     used it names the credential invalid://, so that connections fail: never plain text.
//
// Names, annotations and what is not said here are as in Istio of August 2026, from which the
// scenarios in testdata/conformance are recorded; where that errs, its DECISIONS.md
// says what is right (G1 to G66). VirtualServices have the annotation internal.istio.io/route-semantics:
// gateway: prefixes match whole elements of paths.
//
// # Statuses
//
// Snapshot.Status is the whole status of an object, as it should be, made of what the object
// has: entries of other controllers stay, conditions of types that are not ours stay on
// Gateways and listeners, and a condition that has not turned keeps its time. One that has
// turned has no time: that is for the writer: Cache.PendingStatus sets it. Writing a status and giving the object back
// changes nothing else. An object that is not ours, or not any more, has no Status, and keeps
// the one that it has; a route loses our entries.
//
// Messages are for people, and may change.
//
// # Cost
//
// Each result notes what it has read, present or not, and is made anew when some of that has
// changed and at no other time (tracker). One changed HTTPRoute costs the work of its hosts,
// one Service or ReferenceGrant that of the routes that name it, or look for one; a listener,
// that of the routes of its Gateway. A route that attaches is counted, and no other is read.
// The order of computation is fixed: listeners, routes, policies, statuses, hosts.
//
// # What is ignored
//
// UDPRoutes; sessionPersistence; ExternalAuth and ExtensionRef filters, which are refused;
// parametersRef of a GatewayClass; default Gateways; waypoints. BackendTLSPolicies for other kinds than Service and
// ServiceEntry are not accepted.
package gatewayapi
