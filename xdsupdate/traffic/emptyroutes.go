// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"net/netip"
	"strings"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"

	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/objects"
)

// emptyRoutes returns a placeholder for a route configuration that a proxy does not have, but that
// a listener of the host may still reference. The placeholder has no virtual hosts, so that every
// request is answered with 404. The result is nil if the name is not that of a route configuration.
//
// If a server reports that a route configuration does not exist, Envoy keeps waiting for it:
// without a limit in the delta protocol, with all its listeners inactive if it has just started,
// and until its timeout in SotW. This happens as soon as the last service on a port is deleted or a
// Sidecar no longer imports it.
func emptyRoutes(p *proxy, name string) *routev3.RouteConfiguration {
	if !routesNamed(p, name) {
		return nil
	}
	return routeConfiguration(name, nil)
}

// routesNamed reports whether a route configuration of a proxy can have a name. All other names are
// left to the host.
func routesNamed(p *proxy, name string) bool {
	switch p.Role {
	case objects.GRPCClient:
		return false // gRPC clients handle missing resources by failing calls
	case objects.Router:
		return gatewayRoutesNamed(name)
	default:
		if path, ok := strings.CutPrefix(name, objects.UnixScheme); ok {
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
// "https.PORT.PORTNAME.GATEWAY.NAMESPACE", with an optional suffix ".BIND".
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
		// Port names and names of gateways may contain dots, so there may be more than three parts.
		parts := strings.Split(rest, ".")
		return len(parts) >= 3 && parts[0] != "" && parts[1] != "" && parts[2] != ""
	default:
		return false
	}
}

// bindAddress reports whether a text is an address or unix socket that a server can bind.
func bindAddress(bind string) bool {
	_, err := netip.ParseAddr(bind)
	return err == nil || strings.HasPrefix(bind, objects.UnixScheme)
}
