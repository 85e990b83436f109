// SPDX-License-Identifier: Apache-2.0

package xdsbuild

import (
	"net"
	"net/netip"
	"strconv"
	"strings"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/pilotkit/pilotkit/internal/ipaddr"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// GRPCRoutes returns the route configuration behind the API listener of a port of a service. It
// forwards all requests to the port's cluster. It matches any domain, because only the listener of
// this port references it. The result is nil for a host or port that cannot be part of a resource
// name.
func GRPCRoutes(svc *registry.Service, port *registry.Port) *routev3.RouteConfiguration {
	if !usable(svc.Hostname, port) {
		return nil
	}
	name := envoy.ClusterName(port.Number, svc.Hostname)
	return &routev3.RouteConfiguration{
		Name: name,
		VirtualHosts: []*routev3.VirtualHost{{
			Name: envoy.ListenerName(port.Number, svc.Hostname), Domains: []string{"*"}, Routes: []*routev3.Route{routeTo(name)},
		}},
		ValidateClusters: wrapperspb.Bool(false),
	}
}

// VirtualHost returns the virtual host of an HTTP port of a service for Envoys. Its domains are the
// host name and the addresses, each also with the port. VIPs that are not single IP addresses are
// omitted. The result is nil for a port that is not HTTP, for a host or port that cannot be part of
// a resource name, and for a service without a cluster of its own (Alias). The domains of a
// headless Kubernetes service include "*.HOST", because clients also use the names of its pods,
// "POD.HOST".
func VirtualHost(svc *registry.Service, port *registry.Port, vips []string) *routev3.VirtualHost {
	if !usable(svc.Hostname, port) || !port.Protocol.IsHTTP() || svc.Resolution == registry.Alias {
		return nil
	}
	number := strconv.FormatUint(uint64(port.Number), 10)
	host := strings.ToLower(string(svc.Hostname))
	domains := []string{host}
	if host != "*" {
		domains = append(domains, host+":"+number)
	}
	if svc.Headless() {
		domains = append(domains, "*."+host, "*."+host+":"+number)
	}
	for _, vip := range vips {
		addr, err := netip.ParseAddr(vip)
		if addr = addr.Unmap(); err != nil || addr.IsUnspecified() || addr.Zone() != "" {
			continue
		}
		bare := addr.String()
		if addr.Is6() {
			bare = "[" + bare + "]"
		}
		domains = append(domains, bare, net.JoinHostPort(addr.String(), number))
	}
	return &routev3.VirtualHost{
		Name:    envoy.ListenerName(port.Number, svc.Hostname),
		Domains: domains,
		Routes:  []*routev3.Route{routeTo(envoy.ClusterName(port.Number, svc.Hostname))},
	}
}

// VIPs returns the virtual addresses of a service: the declared one, or else the automatically
// allocated ones.
func VIPs(svc *registry.Service) []string {
	if a := svc.DefaultAddress; a != "" && ipaddr.Canonical(a) != registry.UnspecifiedAddress && ipaddr.Canonical(a) != "::" {
		return []string{svc.DefaultAddress}
	}
	var out []string
	for _, a := range []string{svc.AutoAllocatedIPv4, svc.AutoAllocatedIPv6} {
		if a != "" {
			out = append(out, a)
		}
	}
	return out
}

// HTTPRoutes returns the route configuration of a port for Envoys. Envoy rejects a configuration
// with duplicate domains. Therefore the first virtual host keeps a domain, and a virtual host
// without any domain left is dropped. The virtual hosts become part of the result, and a virtual
// host that loses a domain is modified.
func HTTPRoutes(port uint32, hosts []*routev3.VirtualHost) *routev3.RouteConfiguration {
	rc := &routev3.RouteConfiguration{Name: envoy.HTTPRouteName(port), ValidateClusters: wrapperspb.Bool(false)}
	domains := make(map[string]struct{}, len(hosts))
	names := make(map[string]struct{}, len(hosts))
	for _, h := range hosts {
		if _, taken := names[h.GetName()]; taken {
			continue
		}
		kept := h.GetDomains()[:0]
		for _, d := range h.GetDomains() {
			if _, taken := domains[d]; !taken {
				domains[d] = struct{}{}
				kept = append(kept, d)
			}
		}
		if h.Domains = kept; len(kept) == 0 {
			continue
		}
		names[h.GetName()] = struct{}{}
		rc.VirtualHosts = append(rc.VirtualHosts, h)
	}
	return rc
}

// routeTo returns a route that forwards all requests to a cluster. It disables Envoy's default
// timeout of 15 s, as Istio does, because the timeout would cut streams.
func routeTo(cluster string) *routev3.Route {
	return &routev3.Route{
		Match: everyPath(),
		Action: &routev3.Route_Route{Route: &routev3.RouteAction{
			ClusterSpecifier: &routev3.RouteAction_Cluster{Cluster: cluster},
			Timeout:          durationpb.New(0),
		}},
	}
}
