// SPDX-License-Identifier: Apache-2.0

package istio

import networking "istio.io/api/networking/v1alpha3"

// checkTLSRoute checks a route of passed-through TLS. hosts are those of the
// VirtualService, which have to include every SNI.
func checkTLSRoute(at *field, route *networking.TLSRoute, hosts hostSet) {
	if len(route.Match) == 0 {
		at.child("match").refuse("must have at least one match")
	}
	for i, match := range route.Match {
		place := at.elem("match", i)
		if match == nil {
			place.refuseNull()
			continue
		}
		if len(match.SniHosts) == 0 {
			place.child("sniHosts").refuse("must have at least one host")
		}
		for n, host := range match.SniHosts {
			checkWildcardDomain(place.elem("sniHosts", n), host)
			if !hosts.covers(host) {
				place.elem("sniHosts", n).refuse("must be one of spec.hosts or included by one, is %q", host)
			}
		}
		checkSubnets(place, match.DestinationSubnets)
		checkSource(place, match)
	}
	checkL4Destinations(at, route.Route)
}

// checkTCPRoute checks a route of connections. Without a match it takes all.
func checkTCPRoute(at *field, route *networking.TCPRoute) {
	for i, match := range route.Match {
		place := at.elem("match", i)
		if match == nil {
			place.refuseNull()
			continue
		}
		checkSubnets(place, match.DestinationSubnets)
		if match.SourceSubnet != "" {
			checkSubnet(place.child("sourceSubnet"), match.SourceSubnet)
		}
		checkSource(place, match)
	}
	checkL4Destinations(at, route.Route)
}

func checkSubnets(at *field, subnets []string) {
	for i, subnet := range subnets {
		checkSubnet(at.elem("destinationSubnets", i), subnet)
	}
}

func checkL4Destinations(at *field, destinations []*networking.RouteDestination) {
	if len(destinations) == 0 {
		at.child("route").refuse("must have at least one destination")
	}
	checkDestinations(at, destinations)
}
