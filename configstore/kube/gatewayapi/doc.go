// SPDX-License-Identifier: Apache-2.0

// Package gatewayapi converts the objects of the Kubernetes Gateway API (v1.6) into the Gateways,
// VirtualServices and DestinationRules of Istio, and into statuses.
//
// A Converter is the conversion alone: a value that applies changes of objects and returns
// snapshots, without a cluster, goroutines or locks. Its result depends only on the present
// objects, not on their history.
//
//	c := gatewayapi.NewConverter()
//	update := c.Apply(gatewayapi.Set(gateway), gatewayapi.Set(route), gatewayapi.Set(service))
//	for _, config := range update.After.Configs(istio.VirtualService) { ... }
//	for _, key := range update.Statuses { write(key, update.After.Status(key)) }
//
// A Cache converts the objects of any store that contains them as configs (Schemas), and publishes
// the result as a read-only ConfigStoreCache, together with the objects. With an API server, package
// cluster sets everything up and writes the statuses. Without an API server, the objects can come
// from a directory:
//
//	objects := memory.NewController(memory.Make(gatewayapi.DirectorySchemas().Union(istio.Schemas())))
//	files := file.New("config", objects.Store)
//	configs := gatewayapi.NewCache(objects, gatewayapi.CacheOptions{Infrastructure: host})
//
// There the statuses are available as values: Snapshot.Status. Backends are hosts of
// ServiceEntries, of kind Hostname and group networking.istio.io. A Service is a valid backend,
// too, if a ServiceEntry of its host provides the endpoints.
//
// # Duties of the host
//
// The host runs the proxies, as described at Options.Provided and the interface Infrastructure; the
// status of a Gateway contains the addresses and the readiness that they report. Proxies of a
// Gateway are in its namespace and have the label gateway.networking.k8s.io/gateway-name. Package
// refusals reports the proxies' NACKs to the Cache. The certificates that servers reference
// (kubernetes-gateway://NAMESPACE/NAME), and the CA certificates (the same with -cacert, or
// configmap://NAMESPACE/NAME-cacert), have to be served with xdsupdate/secrets.
//
// # Selected objects
//
// The Converter reads the kinds of Object. It handles a Gateway if its GatewayClass has the
// controller ControllerName, or if it is of the class istio and no GatewayClass of this name
// exists. Gateways of the class istio-remote, and of classes of the controller
// istio.io/unmanaged-gateway, get a status, but no configs. Objects are expected as the API server
// stores them, with the defaults of the Gateway API; missing defaults are filled in. An object that
// an API server would have rejected (a listener without a port, a backend without a name) is
// reported in a condition of the object.
//
// # Results
//
//   - Each working listener of a Gateway or ListenerSet is a Gateway config in the namespace of its
//     object, with one server. The server's hosts select the namespaces of its VirtualServices.
//     Within a Gateway all listeners of a conflict are rejected; between a Gateway and its
//     ListenerSets, and among ListenerSets, the first listener wins.
//   - HTTPRoutes and GRPCRoutes are merged: one VirtualService for each listener and host, in the
//     namespace of its first route, with the rules of all routes in the specification's order of
//     precedence. If a more specific listener of the same port and protocol matches a host, only
//     that listener serves the host. For Services and ServiceEntries there is one VirtualService
//     for each namespace of routes, host and port, of the gateway mesh.
//   - Each TCPRoute and TLSRoute is a VirtualService of its own. Of several routes for one listener
//     or host the oldest takes effect, because VirtualServices have the creation time of their
//     route.
//   - A rule with an unsupported filter or with control characters gets the response 500. A rule
//     with an invalid regular expression is dropped. The status reports both, and the other rules
//     stay. A backend without permission is the empty destination: the proxy responds with
//     500. A backend that does not exist keeps its name, and works as soon as it exists.
//   - A route of the mesh in another namespace than its Service's is for clients of the route's
//     namespace.
//   - The BackendTLSPolicies of a Service or ServiceEntry are a DestinationRule for each of its
//     hosts, which fills in the fields that users' DestinationRules leave unset. Without
//     subjectAltNames the servers' certificates must match the hostname, which is the SNI
//     (xdsupdate/traffic ensures that). Without a usable CA certificate the rule references the
//     credential invalid://, so that connections fail instead of using plain text.
//
// Names, annotations and any behaviour that is not described here are as in Istio of August 2026.
// The scenarios in testdata/conformance are recorded from it; DECISIONS.md lists the deliberate
// differences (G1 to G69). VirtualServices have the annotation
// internal.istio.io/route-semantics: gateway: prefixes match whole path elements.
//
// # Statuses
//
// Snapshot.Status is the complete wanted status of an object, based on its present status. Entries
// of other controllers stay, conditions of foreign types stay on Gateways and listeners, and a
// condition whose status is unchanged keeps its transition time. The time of a changed condition is
// unset until the status is written: Cache.PendingStatus sets it. Writing a status and applying the
// written object has no other effect. An object that this controller does not handle has no Status
// and keeps its present one; a route that this controller has handled before loses the controller's
// entries.
//
// Messages are for people, and may change.
//
// # Cost
//
// Each result records the objects that it has read, including absent ones, and is recomputed only
// when one of them changes (tracker). A changed HTTPRoute costs the recomputation of its hosts. A
// changed Service or ReferenceGrant costs that of the routes that reference it or look for it, and
// a changed listener that of the routes of its Gateway. Attaching a route updates a count and reads
// no other route. The order of computation is fixed: listeners, routes, policies, statuses, hosts.
//
// # Unsupported features
//
// UDPRoutes; sessionPersistence; ExternalAuth and ExtensionRef filters, which are rejected;
// parametersRef of a GatewayClass; default Gateways; waypoints. BackendTLSPolicies for kinds other
// than Service and ServiceEntry are not accepted.
package gatewayapi
