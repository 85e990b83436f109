// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"net/netip"
	"strings"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"

	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// emptyRoutes returns what is served under the name of a route configuration that a
// proxy does not have, but that a listener of the program's may wait for: one that answers
// everything with 404; nil for other names.
//
// An Envoy that is told that a route configuration does not exist waits for it all the
// same: by the incremental protocol for ever, with all its listeners closed if it has
// just started, by the other one until its patience ends. It is enough that the last
// service of a port goes, or that a Sidecar no longer imports it.
func emptyRoutes(p *proxy, name string) *routev3.RouteConfiguration {
	if !routesNamed(p, name) {
		return nil
	}
	return routeConfiguration(name, nil)
}

// routesNamed reports whether a name is one that a route configuration of a proxy can
// have. Other names are those of the program's own, if of anything.
func routesNamed(p *proxy, name string) bool {
	switch p.role {
	case grpcClient:
		return false // They know that there is none, and fail the calls.
	case router:
		return gatewayRoutesNamed(name)
	default:
		if path, ok := strings.CutPrefix(name, unixScheme); ok {
			return path != ""
		}
		if _, ok := envoy.ParseHTTPRouteName(name); ok {
			return true
		}
		port, host, ok := envoy.ParseListenerName(name)
		return ok && port != 0 && !strings.ContainsAny(string(host), " |/")
	}
}

// gatewayRoutesNamed reports whether a name is "http.PORT" or
// "https.PORT.PORTNAME.GATEWAY.NAMESPACE", perhaps with ".BIND".
func gatewayRoutesNamed(name string) bool {
	scheme, rest, _ := strings.Cut(name, ".")
	number, rest, more := strings.Cut(rest, ".")
	if _, ok := envoy.ParseHTTPRouteName(number); !ok {
		return false
	}
	switch scheme {
	case "http":
		return !more || bindAddress(rest)
	case "https":
		// Port names and gateways may have dots: there are three parts or more.
		parts := strings.Split(rest, ".")
		return len(parts) >= 3 && parts[0] != "" && parts[1] != "" && parts[2] != ""
	default:
		return false
	}
}

// bindAddress reports whether a text is what a server is bound to.
func bindAddress(bind string) bool {
	_, err := netip.ParseAddr(bind)
	return err == nil || strings.HasPrefix(bind, unixScheme)
}
