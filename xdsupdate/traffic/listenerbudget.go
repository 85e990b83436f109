// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"fmt"
	"slices"

	networking "istio.io/api/networking/v1alpha3"
)

// The TLS routes of VirtualServices share a listener as HTTP routes share a route
// configuration: each match has a filter chain with all destinations of its route. The
// same limits hold, and are allotted to the namespaces.

const (
	// chainBytes is more than a filter chain has but for its server names and
	// destinations.
	chainBytes = 768
	// weightBytes is more than a destination has in a filter chain but for its names.
	weightBytes = 48
	// rangeBytes is more than a range of addresses has.
	rangeBytes = 64
)

// passedRoutes are the TLS routes of a VirtualService by a server.
type passedRoutes struct {
	server *gatewayServer
	of     *virtualService
}

// admitPassed decides which TLS routes there is room for on a listener, and returns why
// there is none for others.
func (st *state) admitPassed(p *proxy, l *gatewayListener) map[passedRoutes]error {
	var parts []passedRoutes
	for _, s := range l.servers {
		for _, v := range st.virtualServicesOf(p, s) {
			if len(v.spec.GetTls()) > 0 && s.kind.takesTLSRoutes(v) && s.sharesHost(v) {
				parts = append(parts, passedRoutes{s, v})
			}
		}
	}
	slices.SortStableFunc(parts, func(a, b passedRoutes) int { return compareVirtualServices(a.of, b.of) })
	limits := st.settings.limits
	out := make(map[passedRoutes]error)
	claims := make([]claim, len(parts))
	for i, part := range parts {
		claims[i].namespace = part.of.namespace
		switch bytes := st.tlsBytes(part.of); {
		case exceeds(bytes, limits.RouteBytes):
			out[part] = fmt.Errorf("its routes have more than %d bytes", limits.RouteBytes)
		case exceeds(bytes*part.server.repetition(part.of), limits.RepeatedBytes):
			out[part] = tooManyRepetitions(limits.RepeatedBytes)
		default:
			claims[i].cost = bytes
		}
	}
	for i, over := range allot(limits.SharedBytes, claims) {
		if over {
			out[parts[i]] = tooManyBytes("listener", limits.SharedBytes)
		}
	}
	return out
}

// repetition says how often a VirtualService has been repeated when a server has it: by
// the servers before, and for the other Gateways that it names.
func (s *gatewayServer) repetition(v *virtualService) int { return s.position * len(v.gateways) }

// tlsBytes returns no less than the filter chains of the TLS routes of a VirtualService
// have.
func (st *state) tlsBytes(v *virtualService) int {
	n := 0
	for _, r := range v.spec.GetTls() {
		n += len(r.GetMatch()) * (chainBytes + st.destinationBytes(v, r.GetRoute()))
		for _, m := range r.GetMatch() {
			for _, h := range m.GetSniHosts() {
				n += len(h) + 4
			}
			n += len(m.GetDestinationSubnets()) * rangeBytes
		}
	}
	return n
}

// destinationBytes returns no less than destinations have in a filter chain.
func (st *state) destinationBytes(v *virtualService, route []*networking.RouteDestination) int {
	n := 0
	for _, d := range route {
		host := resolveHost(d.GetDestination().GetHost(), v.namespace, st.settings.domain)
		n += len(host) + len(d.GetDestination().GetSubset()) + weightBytes
	}
	return n
}
