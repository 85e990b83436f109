// SPDX-License-Identifier: Apache-2.0

// Package traffic makes Istio's VirtualServices, DestinationRules, Gateways and
// Sidecars take effect, and at gateways AuthorizationPolicies and RequestAuthentications: it decides which of them count for a
// client, and builds the client's clusters, load assignments, listeners and routes of them.
//
// Everything is a function of a state, which is the policies, services and
// endpoints of one moment, and of a proxy, which is what makes a difference in a
// client. A state is immutable. It is asked for resources by name, so that what no
// client is subscribed to costs nothing.
//
//	server := ads.New(registries, ads.Options{Providers: []ads.Provider{traffic.New(configs)}})
//
// # From a change to a push
//
//  1. The store delivers a batch of changes: the objects are kept, all at once, and a
//     push is asked for.
//  2. The push takes the objects that were delivered, and nothing from the store, which
//     may be ahead of its events. It makes a new index of the old one,
//     a new world of services, and a state of both. Scopes (what the proxies of a
//     namespace see) are carried over, and changed when they are looked at.
//  3. Of the difference follows which names may have changed for which proxies
//     (affected): those that turn out equal cost work and are
//     not sent; a missing one would be a mistake, and a model test looks for it.
//  4. The server looks up and builds what clients are subscribed to of that.
//
// Proxies are grouped by what policies look at in them: labels by key, if some
// object names the key. When the set of keys changes, all are grouped anew.
//
// # Prefixes of paths
//
// A prefix matches any path that begins with it. In a VirtualService with the annotation
// internal.istio.io/route-semantics, whose value is "ingress" or "gateway", it matches whole
// elements, as Kubernetes wants it: "/a" and "/a/" match /a, /a/ and /a/b, and not /ab.
// What replaces it is joined to the rest by one slash: "/" in the place of "/a" makes /b of
// /a/b. gRPC clients, which know no such matches, have two routes for one.
//
// # TLS routes
//
// TLS routes are for servers that pass TLS on: a filter chain for each match. Those of TLSRoutes
// (internal.istio.io/route-semantics: gateway) are for servers that terminate TLS without HTTP
// as well, for names among the hosts of the server, and come before its TCP routes, which have
// all other names.
//
// # gRPC clients
//
// A gRPC client asks for a cluster when a route names it. grpc-go (v1.84) uses the
// new routes a moment before its balancers have the new cluster, and fails calls meanwhile:
// Unavailable, "unknown cluster selected for RPC", also with WaitForReady. So package ads
// first sends it the routes that it has with such that match no call and name the cluster
// (Phases). A client that comes back to a server while routes move has that moment.
//
// # Authorization
//
// AuthorizationPolicies are filters of a gateway's listeners: CUSTOM, AUDIT, DENY, ALLOW, in this
// order, for requests, and for connections of which no request is known; RequestAuthentications are one after CUSTOM, for
// requests. They fail closed. A
// rule that cannot be checked allows nothing, or denies more than it says; a policy that an Envoy
// refuses denies everything, or allows nothing, at that Envoy; what the policies of a provider are about
// is refused if the provider is not known or has no cluster; and a listener closes all connections
// that would repeat policies of too many bytes (Limits.SharedBytes). Effects and Ineffective say
// what does not have the effect that it seems to have.
//
// Requests without a token pass RequestAuthentications, those with one that is not valid are refused. Keys are those of
// the object, or are fetched by Policies.Run with Options.KeyFetcher: until there are some no token of the issuer is valid. Where a rule cannot
// be sent, or an Envoy refuses the object, all requests are denied.
//
// Only gateways are protected. Sidecars' inbound listeners are the program's, and gRPC servers are
// not configured. Connections that are open when a policy comes are drained, and use the
// filters that they had until they are closed; a route that is written together with a policy may be
// used some milliseconds before it.
//
// # Gateways
//
// A Gateway selects routers by their labels, those of the workload that has the
// router's address if the registry knows one. Its servers become listeners on the
// ports that services in front of the router forward to, or else on their own. TLS
// contexts name secrets, which package secrets or the program serves by SDS.
//
// TCP and TLS routes are for connections to their destinationSubnets, which are compared
// with the address that the client dialed, and from their sourceSubnet. Of the routes of
// the most specific server name the first that fits has a connection, and without one it
// is closed. sourceLabels and sourceNamespace are compared with the router's own, because
// it does not know those of its clients: a match of others is left out.
//
// What gateways are sent was compared with what Istio sends, and Envoys of the newest
// and the oldest release that is supported run on it.
package traffic
