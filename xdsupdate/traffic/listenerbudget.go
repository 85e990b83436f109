// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"fmt"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/hostname"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/objects"
)

// TLS routes of VirtualServices share a listener as HTTP routes share a route configuration. Each
// match has a filter chain with all destinations of its route. The same limits apply, and they are
// allotted to namespaces in the same way.

const (
	// chainBytes is an upper bound for the size of a filter chain without server names and
	// destinations.
	chainBytes = 768
	// weightBytes is an upper bound for the size of a destination in a filter chain without its
	// names.
	weightBytes = 48
	// rangeBytes is an upper bound for the size of an address range.
	rangeBytes = 64
)

// passedRoutes are the TLS routes of a VirtualService at a server.
type passedRoutes struct {
	server *gatewayServer
	of     *objects.VirtualService
}

// admitPassed decides which TLS routes fit on a listener. It returns the errors for the others.
func (st *state) admitPassed(p *proxy, l *gatewayListener) map[passedRoutes]error {
	var parts []passedRoutes
	for _, s := range l.servers {
		for _, v := range st.virtualServicesOf(p, s) {
			if len(v.Spec.GetTls()) > 0 && s.kind.takesTLSRoutes(v) && s.sharesHost(v) {
				parts = append(parts, passedRoutes{s, v})
			}
		}
	}
	limits := st.settings.limits
	out := make(map[passedRoutes]error)
	claims := make([]claim, len(parts))
	for i, part := range parts {
		claims[i] = claimOf(part.of.Config, 0)
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

// repetition returns the number of copies of a VirtualService up to and including a server: one for
// each earlier server, for each Gateway that the VirtualService is bound to.
func (s *gatewayServer) repetition(v *objects.VirtualService) int {
	return s.position * len(v.Gateways)
}

// tlsBytes returns an upper bound for the size of the filter chains of a VirtualService's TLS
// routes.
func (st *state) tlsBytes(v *objects.VirtualService) int {
	n := 0
	for _, r := range v.Spec.GetTls() {
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

// destinationBytes returns an upper bound for the size of destinations in a filter chain.
func (st *state) destinationBytes(v *objects.VirtualService, route []*networking.RouteDestination) int {
	n := 0
	for _, d := range route {
		host := hostname.Resolve(d.GetDestination().GetHost(), v.Namespace, st.settings.Domain)
		n += len(host) + len(d.GetDestination().GetSubset()) + weightBytes
	}
	return n
}
