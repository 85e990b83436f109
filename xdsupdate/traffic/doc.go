// SPDX-License-Identifier: Apache-2.0

// Package traffic implements Istio's traffic and security policies for an ads.Server. It builds the
// clusters, load assignments, listeners and route configurations of clients from VirtualServices,
// DestinationRules, Gateways, Sidecars, AuthorizationPolicies, PeerAuthentications and
// RequestAuthentications in a config store.
//
//	policies := traffic.New(configs) // a configstore.ConfigStoreCache
//	server := ads.New(registries, ads.Options{Providers: []ads.Provider{policies}})
//	server.Register(grpcServer)
//	go policies.Run(stop) // fetches the keys of RequestAuthentications
//	go server.Run(stop)
//
// The host runs the store and the registries. Later changes of the store reach clients by pushes of
// the server. Policies.Explain evaluates one call, Policies.Effects lists the effects of an object,
// and Policies.Ineffective lists objects and fields without effect. Options contains the mesh
// configuration, and Limits bound the size of resources.
//
// The resources of a client depend on its kind:
//
//   - Sidecars receive clusters, load assignments and outbound HTTP routes. The host configures
//     their listeners, so that no policy protects their inbound side.
//   - Gateways also receive listeners for the Gateways that select them, protected by
//     AuthorizationPolicies and RequestAuthentications.
//   - gRPC clients receive an API listener and a route configuration for each service port that
//     they call, with its clusters and load assignments.
//   - gRPC servers receive inbound listeners, with mutual TLS or plain text according to
//     PeerAuthentications, protected by AuthorizationPolicies.
//
// # Guarantees
//
//   - All resources of a push belong to one snapshot of policies, services and endpoints, as far as
//     the store delivers batches (see New). They depend only on that snapshot, on the fetched keys
//     and on the client, and not on the order of changes, so that all replicas agree.
//   - Snapshots are immutable. Explain, Effects, Ineffective and HasSynced may be called from any
//     goroutine.
//   - Only resources that clients are subscribed to are built.
//   - An invalid or rejected part of an object is left out or answered with an error, and is
//     reported. Other objects are served, and policies fail closed.
//   - If objects of several namespaces exceed a shared limit, each namespace keeps the objects within
//     its share of the limit (see Limits).
//
// # From a change to a push
//
//  1. The store delivers a batch of changes. The batch is stored as a whole, and a push is
//     requested.
//  2. The push reads the delivered objects. It does not read the store, which may be ahead of its
//     events. It derives a new index of policies and a new world of services from the last ones, and
//     a new state from both. Scopes, which contain the services and VirtualServices visible in a
//     namespace, are carried over and updated on demand.
//  3. The difference between the states determines the names that may have changed, and the
//     proxies concerned (see affected). An unchanged resource among them costs work and is not sent.
//     A missing name would be a bug, which a model test looks for.
//  4. The server looks up the names among them that clients are subscribed to, and builds these
//     resources.
//
// Proxies are grouped by the properties that policies use. For example, a label belongs to the group
// if some object refers to its key. When the set of keys changes, all proxies are regrouped.
//
// # Path prefixes
//
// A path prefix matches every path that begins with it. In a VirtualService with the annotation
// internal.istio.io/route-semantics and the value "ingress" or "gateway", it matches whole path
// elements, as Kubernetes specifies: "/a" and "/a/" match /a, /a/ and /a/b, but not /ab. A rewrite
// joins the replacement and the rest of the path by one slash: replacing "/a" by "/" makes /b of
// /a/b. gRPC clients do not support such matches and receive two routes instead of one.
//
// # TLS and TCP routes
//
// At a gateway, TLS routes apply to servers that pass TLS through. Each match has a filter chain. TLS
// routes of the Gateway API's TLSRoutes (internal.istio.io/route-semantics: gateway) also apply to
// servers that terminate TLS without HTTP, for server names among the hosts of the server. They take
// precedence over its TCP routes, which receive all other names.
//
// TCP and TLS routes match destinationSubnets with the address that the client has dialed. TCP routes
// match sourceSubnet with the address of the client. A connection gets the first matching route for
// its most specific server name, and is closed without one. sourceLabels and sourceNamespace are
// compared with the gateway's own, because a gateway does not know its clients' labels. A match with
// other values is left out.
//
// # Gateways
//
// A Gateway selects gateway proxies by labels. These are the labels of the workload with the proxy's
// address if the registry knows it. The listener of a server uses the target port of a service in
// front of the proxy, or else the port of the server. TLS contexts reference secrets, which package
// secrets or the host serves by SDS.
//
// The resources of gateways are compared with the output of Istio, and tested with Envoys of the oldest
// and the newest supported release.
//
// # gRPC clients
//
// A gRPC client subscribes to a cluster when a route references it. grpc-go (v1.84) applies new
// routes shortly before its balancers have the new cluster, and meanwhile fails calls with
// Unavailable, "unknown cluster selected for RPC", even with WaitForReady. Package ads therefore
// first sends the client its current routes together with routes that reference the new cluster but
// match no call (see Phases there). A client that reconnects while routes change is not protected
// against this failure.
//
// # Authorization
//
// At gateways, policies are filters of each listener, in this order: CUSTOM AuthorizationPolicies,
// RequestAuthentications, then AUDIT, DENY and ALLOW AuthorizationPolicies. Connections without HTTP
// have the AuthorizationPolicies alone. At gRPC servers, the filters are DENY, then ALLOW. CUSTOM
// policies deny there, because a gRPC server cannot ask a provider, and AUDIT policies, dry runs and
// RequestAuthentications have no effect.
//
// Policies fail closed:
//
//   - A rule that cannot be checked allows nothing, or denies more than it specifies.
//   - If a client rejects a policy, the policy allows nothing, or denies everything, at this client.
//   - Requests that match a CUSTOM policy are denied if its provider is unknown or has no cluster, or
//     if a gateway has several providers without Options.MultipleCustomProviders.
//   - Copies of the policies in all filter chains of a listener count towards Limits.SharedBytes.
//     Connections of filter chains beyond the limit are closed. A gRPC server denies all calls if its
//     policies exceed the limit.
//   - If a rule of a RequestAuthentication cannot be sent, or an Envoy rejects the object, all
//     requests are denied.
//
// RequestAuthentications accept requests without a token and deny requests with an invalid one. The
// keys are in the object, or are fetched by Policies.Run with Options.KeyFetcher. Until they are
// fetched, no token of the issuer is valid.
//
// Envoys drain the open connections of a gateway when a policy changes. An open connection keeps its
// filters until it is closed. A route that is written together with a policy may take effect some
// milliseconds before the policy.
package traffic
