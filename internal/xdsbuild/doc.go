// SPDX-License-Identifier: Apache-2.0

// Package xdsbuild turns services and their endpoints into xDS resources: clusters, load
// assignments, listeners, filter chains and route configurations. The functions are pure. Package
// xdsupdate/envoy has the names of the resources.
//
// # Clients
//
// Every resource passes the Validate and ValidateAll of go-control-plane and is accepted by Envoy.
// ForGRPC builds resources that gRPC clients accept, which is less: they reject all cluster types
// except EDS and LOGICAL_DNS, and cannot use unix sockets.
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
// DNS is the cluster type "envoy.clusters.dns", the successor of STRICT_DNS and LOGICAL_DNS.
// Resources for Envoys have no field that is deprecated in Envoy 1.36 to 1.40. Resources for gRPC
// clients have the deprecated fields that their older releases read.
//
// A DNS service without a usable endpoint has no cluster. Endpoints that no client accepts are
// omitted, so that clients do not reject the others. CheckEndpoint returns the reason, which hosts
// can report.
//
// # Weights and localities
//
// Traffic is distributed by the weights of the endpoints, regardless of their localities. Envoys do
// so because the clusters have no locality-weighted load balancing, and Envoys then ignore the
// weights of localities. gRPC clients choose a locality by its weight, which is the sum of its
// endpoints' weights, with the same result. Within a locality they choose at random and ignore the
// endpoints' weights. All endpoints have one priority. Preferring near endpoints, failover and
// other weights of localities belong to a traffic policy; as in Istio 1.30 none of them is set
// without one.
//
// # Policies
//
// Upstream is a port of a service, or a subset of it, under a DestinationRule. TrafficPolicy
// reduces the levels of a rule to the effective policy of a port and a subset. The functions
// Cluster and LoadAssignment return the resources of an Upstream without a policy and without
// knowledge of the proxy. A cluster of an Upstream also has Istio's defaults: least request, and no
// limits of connections.
//
// # Secrets
//
// TLS contexts reference secrets by the names of xdsupdate/envoy, over the stream that carries the
// contexts. The host, or the provider of xdsupdate/secrets, serves the secrets.
//
// An Envoy does not use a cluster before it has the cluster's secrets, or has timed out waiting for
// them. Therefore clusters reference the secrets of the mesh only if connections can need them: if
// a policy asks for mutual TLS, and with automatic mutual TLS from the first endpoint of the
// service that accepts it (Upstream.MutualTLS). In a mesh without certificates no cluster
// references them.
//
// References to a secret are identical in all resources and never change, because an Envoy treats a
// reference with other bytes as another source, and may never get the secret from it
// (envoyproxy/envoy#47309).
//
// # Determinism
//
// The same arguments give equal messages, independent of the order of the endpoints in a list, so
// that their deterministic encodings are equal in every replica.
//
// # Concurrency
//
// Every function is safe for concurrent use. Arguments are only read; results belong to the caller.
package xdsbuild
