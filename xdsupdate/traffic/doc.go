// SPDX-License-Identifier: Apache-2.0

// Package traffic makes Istio's VirtualServices, DestinationRules, Gateways and
// Sidecars take effect: it decides which of them count for a client, and builds
// the client's clusters, load assignments, listeners and routes of them.
//
// Everything is a function of a state, which is the policies, services and
// endpoints of one moment, and of a proxy, which is what makes a difference in a
// client. A state is immutable. It is asked for resources by name, so that what no
// client is subscribed to costs nothing.
//
// # Gateways
//
// A Gateway selects routers by their labels, those of the workload that has the
// router's address if the registry knows one. Its servers become listeners on the
// ports that services in front of the router forward to, or else on their own. TLS
// contexts name secrets, which package secrets or the host serves by SDS.
//
// What gateways are sent was compared with what Istio sends, validated, and
// interpreted by a simulation of Envoy's documented rules; MOSN, which takes Envoy's
// resources, carried HTTP, TCP and TLS with client certificates by it. It never ran
// on Envoy itself: that holds for the choice of filter chains, server names,
// redirects and priorities above all, in which MOSN is no measure.
package traffic
