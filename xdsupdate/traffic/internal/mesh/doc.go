// SPDX-License-Identifier: Apache-2.0

// Package mesh contains the services, endpoints and workloads of one snapshot, and what proxies see
// of them.
//
//	w := mesh.NewWorld(last, push)                           // at the cost of the hosts that changed
//	s := mesh.NewScope(index, w, sidecar, namespace, limit)  // what proxies of a namespace see
//	e := s.EgressFor(80)                                     // a listener of the Sidecar
//	e.Service("cart.shop.svc.cluster.local")                 // merged, with the ports that it has there
//
// A Scope is derived from that of an earlier snapshot by a ScopeBase, which collects the changes
// since. Places follows which workloads are at the addresses of clients.
//
// # Concurrency
//
// Everything but Places is immutable except for cached computations, and everything may be used from
// any goroutine.
package mesh
