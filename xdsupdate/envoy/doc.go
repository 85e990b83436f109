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
//	DNSLB           | STRICT_DNS            | LOGICAL_DNS, first endpoint
//	DNSRoundRobinLB | LOGICAL_DNS           | LOGICAL_DNS
//	Passthrough     | ORIGINAL_DST          | none
//	DynamicDNS      | dynamic forward proxy | none
//	Alias           | none                  | none
//
// A DNS service without a usable endpoint has no cluster.
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
