// SPDX-License-Identifier: Apache-2.0

// Package envoy turns services and their endpoints into xDS resources: clusters,
// load assignments, API listeners and route configurations. The functions are
// pure, so that they can be used with anybody's xDS server; xdsupdate/ads is ours.
//
// Resources are named as Istio 1.30 names them: "outbound|80||api.example.com"
// is the cluster of port 80, and also its load assignment and its route
// configuration for gRPC; "api.example.com:80" is its API listener; "80" is the
// route configuration of all HTTP services on port 80 for Envoys.
//
// # Clients
//
// Every resource passes the Validate and ValidateAll of go-control-plane and is
// accepted by Envoy. ForGRPC asks for what gRPC clients accept, which is less:
// they refuse all cluster types but EDS and LOGICAL_DNS, and cannot use unix
// sockets.
//
//	resolution      | cluster for Envoy     | cluster for gRPC
//	----------------|-----------------------|------------------------------
//	ClientSideLB    | EDS                   | EDS
//	DNSLB           | DNS, as STRICT_DNS    | LOGICAL_DNS, first endpoint
//	DNSRoundRobinLB | DNS, as LOGICAL_DNS   | LOGICAL_DNS
//	Passthrough     | ORIGINAL_DST          | EDS; none of a ServiceEntry
//	DynamicDNS      | dynamic forward proxy | none
//	Alias           | none                  | none
//
// DNS is the cluster type "envoy.clusters.dns", the successor of the other two. What
// Envoys are sent has no deprecated field of Envoy 1.36 to 1.40; what gRPC clients are
// sent has those that their older releases read.
//
// A DNS service without a usable endpoint has no cluster. Endpoints that no client
// takes are left out, so that they do not make it refuse the others; CheckEndpoint
// says why, for hosts to report.
//
// # Weights and localities
//
// Traffic is shared by the weights of the endpoints, wherever they are. Envoys do
// so because the clusters have no locality-weighted load balancing: the weights of
// localities mean nothing to them. gRPC clients choose a locality by its weight,
// which is the sum of its endpoints' and so comes to the same; but within it they
// choose at random and ignore the endpoints' weights. There is one priority:
// preferring near endpoints, failing over to others, and other weights of
// localities are matters of a traffic policy, and as in Istio 1.30 nothing of it is
// set without one.
//
// # Policies
//
// Upstream is a port of a service, or a subset of it, under a DestinationRule.
// TrafficPolicy reduces the levels of a rule to the policy that holds for a port and
// a subset. The functions Cluster and LoadAssignment are those of an Upstream without
// a policy and without anything known of the proxy; a cluster of an Upstream also
// has Istio's defaults: least request, and no limits of connections.
//
// # Secrets
//
// TLS contexts refer to secrets by Istio's names, over the stream that they came
// on; the host, or the generator of xdsupdate/secrets, serves them:
//
//	"kubernetes://NAME", "kubernetes://NAME-cacert" | of a credentialName: certificate and key, authorities
//	"file-cert:CERTIFICATE~KEY", "file-root:FILE"   | of files; "file-root:system" are the operating system's
//	"default", "ROOTCA"                             | of the mesh: the workload's own, the authorities
//
// An Envoy does not use a cluster before it has its secrets, or has waited for them. So
// clusters name those of the mesh only where connections can need them: where a policy
// asks for mutual TLS, and with automatic mutual TLS from the first endpoint of the
// service that takes it (Upstream.MutualTLS). In a mesh without certificates none does.
//
// What refers to a secret is the same in all resources, and stays the same: an Envoy
// takes other bytes for another source, and may never get the secret from it
// (envoyproxy/envoy#47309).
//
// # Determinism
//
// The same arguments give equal messages, whatever the order of the endpoints in
// a list, so that their deterministic encodings are equal in every replica.
//
// # Concurrency
//
// Every function may be called from any goroutine. Arguments are only read;
// results belong to the caller.
package envoy
