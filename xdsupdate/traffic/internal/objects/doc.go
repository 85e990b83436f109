// SPDX-License-Identifier: Apache-2.0

// Package objects contains Istio's objects of one snapshot in the form that resources are built
// from: with full names, in the order of precedence, and indexed.
//
//	x := objects.NewIndex(configs, settings)
//	next := x.WithAll(changes) // at the cost of the changes
//	rule, _ := next.RuleOf(proxy, "cart.shop.svc.cluster.local", "shop")
//
// Each kind has a file: VirtualService, DestinationRule, Gateway, Sidecar, AuthorizationPolicy,
// PeerAuthentication and RequestAuthentication. The Index answers the questions of the builders:
// which objects apply to a proxy, a host or a Gateway. It knows no services, and builds no resources.
//
// # Concurrency
//
// Objects and indexes are immutable.
package objects
