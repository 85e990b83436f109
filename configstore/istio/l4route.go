// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"strings"

	networking "istio.io/api/networking/v1alpha3"
)

// checkTLSRoute checks a route of passthrough TLS. hosts are the hosts of the VirtualService, which
// must include every server name.
func checkTLSRoute(at *field, route *networking.TLSRoute, hosts *hostSet, scope routeScope) {
	if len(route.Match) == 0 {
		at.child("match").refuse("must have at least one match")
	}
	for place, match := range elements(at, "match", route.Match) {
		if len(match.SniHosts) == 0 {
			place.child("sniHosts").refuse("must have at least one host")
		}
		for n, host := range match.SniHosts {
			checkServerName(place.elem("sniHosts", n), host, hosts, scope)
		}
		checkSubnets(place, match.DestinationSubnets)
		checkSource(place, match)
	}
	checkL4Destinations(at, route.Route, scope)
}

// checkServerName checks a name that clients ask for in TLS.
func checkServerName(at *field, name string, hosts *hostSet, scope routeScope) {
	switch {
	case isIP(name):
		at.warn("is an IP address, %q, which TLS clients do not send as a server name", name)
		return
	case scope.gateways && isClusterServerName(name):
	default:
		checkWildcardDomain(at, name)
		if isPartialWildcard(name) {
			at.warn("is %q; Envoy takes only wildcards that are a whole label as server names", name)
		}
	}
	if !hosts.covers(name) {
		at.refuse("must be one of spec.hosts or included by one, is %q", name)
	}
}

// isClusterServerName reports whether a name is what sidecars send to gateways
// with TLS mode AUTO_PASSTHROUGH: "outbound_.port_.subset_.host".
func isClusterServerName(name string) bool {
	rest, ok := strings.CutPrefix(name, "outbound_.")
	if !ok || len(name) > maxDomainLength {
		return false
	}
	port, rest, ok := strings.Cut(rest, "_.")
	if !ok || !isNumeric(port) {
		return false
	}
	subset, host, ok := strings.Cut(rest, "_.")
	return ok && (subset == "" || isDNSLabel(subset)) && isFQDN(host)
}

// checkTCPRoute checks a route of connections. Without a match it takes all.
func checkTCPRoute(at *field, route *networking.TCPRoute, scope routeScope) {
	for place, match := range elements(at, "match", route.Match) {
		checkSubnets(place, match.DestinationSubnets)
		if match.SourceSubnet != "" {
			checkSubnet(place.child("sourceSubnet"), match.SourceSubnet)
		}
		checkSource(place, match)
	}
	checkL4Destinations(at, route.Route, scope)
}

func checkSubnets(at *field, subnets []string) {
	for i, subnet := range subnets {
		checkSubnet(at.elem("destinationSubnets", i), subnet)
	}
}

func checkL4Destinations(at *field, destinations []*networking.RouteDestination, scope routeScope) {
	if len(destinations) == 0 {
		at.child("route").refuse("must have at least one destination")
	}
	checkDestinations(at, destinations, scope)
}
