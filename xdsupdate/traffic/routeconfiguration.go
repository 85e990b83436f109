// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"net/netip"
	"slices"
	"strings"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"
	meshconfig "istio.io/api/mesh/v1alpha1"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/internal/xdsbuild"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/objects"
)

// routes returns a route configuration of a proxy by its name, or nil, and the errors for parts of
// it that are left out.
func (st *state) routes(p *proxy, name string) (*routev3.RouteConfiguration, []error) {
	switch p.Role {
	case objects.GRPCClient:
		return st.grpcRoutes(p, name)
	case objects.Router:
		return st.gatewayRoutes(p, name)
	default:
		return st.outboundRoutes(p, name)
	}
}

// outboundRouteNames returns the names of all route configurations that the listeners of a sidecar
// can reference, sorted.
func (st *state) outboundRouteNames(p *proxy) []string {
	var out []string
	scope := st.scopeOf(p)
	for _, e := range scope.Egress {
		if e.Named() {
			if len(httpPorts(e.Services)) > 0 {
				out = append(out, e.RouteName())
			}
			continue
		}
		for _, port := range httpPorts(e.Services) {
			if scope.EgressFor(port) == e {
				out = append(out, envoy.HTTPRouteName(port))
			}
		}
		for _, svc := range e.Services {
			for _, port := range svc.Ports {
				if scope.EgressFor(port.Number) == e && detects(svc, port.Number, p) {
					out = append(out, envoy.ListenerName(port.Number, svc.Host))
				}
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// maxDirectResponseBody allows direct responses with bodies of up to 1 MiB. Envoy's default is 4
// KiB, and it rejects route configurations with larger bodies.
const maxDirectResponseBody = 1 << 20

func routeConfiguration(name string, hosts []*routev3.VirtualHost) *routev3.RouteConfiguration {
	return &routev3.RouteConfiguration{
		Name: name, VirtualHosts: hosts,
		// Clusters are created and deleted independently of routes.
		ValidateClusters:               wrapperspb.Bool(false),
		IgnorePortInHostMatching:       true,
		MaxDirectResponseBodySizeBytes: wrapperspb.UInt32(maxDirectResponseBody),
	}
}

// The names of the virtual host for unknown hosts.
const (
	catchAllOpen   = "allow_any"
	catchAllClosed = "block_all"
)

// catchAll returns the virtual host for requests to unknown hosts. They are forwarded to their
// original destination or to the Sidecar's egress proxy, or answered with 502.
func (st *state) catchAll(p *proxy) *routev3.VirtualHost {
	name, route := catchAllOpen, &routev3.Route{}
	cluster, allowed := st.unknownTraffic(p)
	if allowed {
		route = (&xdsbuild.RouteScope{Retries: &networking.HTTPRetry{}}).DefaultRoute(cluster, nil)
	} else {
		name = catchAllClosed
		route.Match = &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_Prefix{Prefix: "/"}}
		route.Action = &routev3.Route_DirectResponse{DirectResponse: &routev3.DirectResponseAction{Status: 502}}
	}
	route.Name = name
	return &routev3.VirtualHost{
		Name: name, Domains: []string{"*"}, Routes: []*routev3.Route{route},
		IncludeRequestAttemptCount: st.settings.countsAttempts(p),
	}
}

// unknownTraffic returns the cluster for requests to unknown hosts, and whether such requests are
// allowed. The proxy's Sidecar decides, or else the mesh configuration.
func (st *state) unknownTraffic(p *proxy) (cluster string, allowed bool) {
	sc := st.SidecarOf(&p.Proxy)
	policy := (*networking.OutboundTrafficPolicy)(nil)
	if sc != nil {
		policy = sc.Spec.GetOutboundTrafficPolicy()
	}
	if policy == nil {
		return xdsbuild.Passthrough, st.settings.allowsUnknown()
	}
	if policy.GetMode() != networking.OutboundTrafficPolicy_ALLOW_ANY {
		return "", false
	}
	if d := policy.GetEgressProxy(); d != nil {
		return st.destinationCluster(p, d, sc.Namespace, 0), true
	}
	return xdsbuild.Passthrough, true
}

// allowsUnknown reports whether requests to unknown hosts are forwarded to their original
// destination. ALLOW_ANY_DYNAMIC_DNS forwards them too. However, it blocks them if it demands TLS,
// because only a cluster that resolves hosts could add TLS, and plain text must not be sent
// instead. An unknown mode blocks them.
func (s *settings) allowsUnknown() bool {
	policy := s.Mesh.GetOutboundTrafficPolicy()
	switch policy.GetMode() {
	case meshconfig.MeshConfig_OutboundTrafficPolicy_ALLOW_ANY:
		return true
	case meshconfig.MeshConfig_OutboundTrafficPolicy_ALLOW_ANY_DYNAMIC_DNS:
		return policy.GetTls() == nil
	default:
		return false
	}
}

// routesNamed reports whether a route configuration of a proxy can have a name. All other names are
// left to the host. If the proxy does not have it, a listener of the host may still reference it, and
// it is replaced by one without virtual hosts, so that every request is answered with 404.
//
// If a server reports that a route configuration does not exist, Envoy keeps waiting for it:
// without a limit in the delta protocol, with all its listeners inactive if it has just started,
// and until its timeout in SotW. This happens as soon as the last service on a port is deleted or a
// Sidecar no longer imports it.
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

// listener returns a listener of a proxy by its name, or nil, and the errors for parts of it that
// are left out. The host configures the listeners of sidecars.
func (st *state) listener(p *proxy, name string) (*listenerv3.Listener, []error) {
	switch p.Role {
	case objects.GRPCClient:
		if _, inbound, _ := xdsbuild.ParseInboundName(name); inbound {
			return st.serverListener(p, name)
		}
		return st.grpcListener(p, name), nil
	case objects.Router:
		return st.gatewayListener(p, name)
	default:
		return nil, nil
	}
}
