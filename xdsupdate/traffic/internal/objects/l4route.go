// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"slices"

	networking "istio.io/api/networking/v1alpha3"
)

// L4Match is a match of a TCP or TLS route.
type L4Match interface {
	GetPort() uint32
	GetGateways() []string
	GetSourceLabels() map[string]string
	GetSourceNamespace() string
	GetDestinationSubnets() []string
}

// L4Route is a TCP or TLS route of a VirtualService.
type L4Route struct {
	Field   string
	Matches []L4Match
	To      []*networking.RouteDestination
	// TLS is set for a TLS route.
	TLS bool
}

// L4Routes returns the TCP routes, followed by the TLS routes.
func (v *VirtualService) L4Routes() (out []L4Route) {
	for i, r := range v.Spec.GetTcp() {
		route := L4Route{Field: Element("spec.tcp", i), To: r.GetRoute()}
		for _, m := range r.GetMatch() {
			route.Matches = append(route.Matches, m)
		}
		out = append(out, route)
	}
	for i, r := range v.Spec.GetTls() {
		route := L4Route{Field: Element("spec.tls", i), To: r.GetRoute(), TLS: true}
		for _, m := range r.GetMatch() {
			route.Matches = append(route.Matches, m)
		}
		out = append(out, route)
	}
	return out
}

// MatchesDestinations reports whether some TCP or TLS route matches on destination subnets.
func (v *VirtualService) MatchesDestinations() bool {
	return slices.ContainsFunc(v.L4Routes(), func(r L4Route) bool {
		return slices.ContainsFunc(r.Matches, func(m L4Match) bool { return len(m.GetDestinationSubnets()) > 0 })
	})
}
