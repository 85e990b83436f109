// SPDX-License-Identifier: Apache-2.0

// Package traffic makes Istio's VirtualServices, DestinationRules, Gateways and
// Sidecars take effect: it decides which of them count for a client, and builds
// the client's clusters, load assignments, listeners and routes of them.
//
// Everything is a function of a state, which is the policies, services and
// endpoints of one moment, and of a proxy, which is what makes a difference in a
// client. A state is immutable. It is asked for resources by name, so that what no
// client is subscribed to costs nothing.
package traffic
