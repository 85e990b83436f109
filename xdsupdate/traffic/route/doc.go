// SPDX-License-Identifier: Apache-2.0

// Package route decides about requests by the resources that a proxy is sent: the listener and the
// filter chain of a connection, its policies, the route of a request and its destination, as values.
// It is for gateways with a data plane of their own, for tests of a mesh's configuration, and for
// explanations. Policies.Watch of package traffic has the Router of a gateway or a client workload.
//
//	d := router.Route(route.FromHTTP(r, 80))
//	switch d.Outcome {
//	case route.Forwarded:
//		endpoints := router.Endpoints(d.Destination.Cluster)
//	case route.Answered:
//		http.Error(w, "", d.Status)
//	}
//
// The decision is that of the newest supported Envoy with the same resources, or a stricter one:
//
//   - Content that is not known here, such as a filter of the host, denies (Unsupported).
//   - A request with several Host headers is answered with 400.
//   - A route to a cluster that does not exist is answered like by Envoy. A cluster without healthy
//     endpoints is the host's to answer (503).
//   - Extension providers of CUSTOM policies are the host's to ask (Access.Asked).
//   - Faults, mirrors, retries, CORS and format commands in header values are the host's to apply.
//
// # Concurrency
//
// Everything is immutable, apart from parts that are compiled when they are first needed, and safe
// for concurrent use. Route takes no lock.
package route
