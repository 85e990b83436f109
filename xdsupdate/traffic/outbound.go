// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// unknownHostPort is where hosts are served that VirtualServices name and no
// service has.
const unknownHostPort = 80

// httpPort reports whether requests to a port can be routed as HTTP: its protocol
// is HTTP of some kind, or unknown, so that the client detects it.
func httpPort(p servicePort) bool {
	return (p.Protocol.IsHTTP() || p.Protocol == registry.ProtocolUnsupported) && p.of.Resolution != registry.Alias
}

// onPort returns the port of a service if requests to it can be routed as HTTP.
func onPort(svc *service, number uint32) bool {
	p, ok := svc.port(number)
	return ok && httpPort(p)
}

// outboundRoutes returns the route configuration of a sidecar by its name, nil for
// none, and what is left out of it:
//
//	80               what is sent to port 80, or to an HTTP proxy listener on it
//	unix:///path     what is sent to the listener with this bind
//	HOST:PORT        what is sent to the address of a service, or to a pod of a headless
//	                 one, to a port whose protocol the sidecar detects
func (st *state) outboundRoutes(p *proxy, name string) (*routev3.RouteConfiguration, []error) {
	scope := st.scopeOf(p)
	if e := scope.egressNamed(name); e != nil {
		b := st.allPorts(p, e)
		return routeConfiguration(name, append(b.hosts, st.catchAll(p))), b.leftOut
	}
	if port, ok := envoy.ParseHTTPRouteName(name); ok {
		e := scope.egressFor(port)
		if e == nil {
			return nil, nil
		}
		b := st.newVirtualHosts(p, e, servicesOn(e, port))
		st.addPort(b, e, port, bareDomains)
		return routeConfiguration(name, append(b.hosts, st.catchAll(p))), b.leftOut
	}
	if port, host, ok := envoy.ParseListenerName(name); ok && port != 0 {
		return st.detectedRoutes(p, name, host, port)
	}
	return nil, nil
}

// egressNamed returns the listener whose route configuration has a name of its own.
func (s *scope) egressNamed(name string) *egress {
	i := slices.IndexFunc(s.egress, func(e *egress) bool { return e.named() && e.routeName() == name })
	if i < 0 {
		return nil
	}
	return s.egress[i]
}

// routeName is the name of the route configuration of a listener with a name of
// its own.
func (e *egress) routeName() string {
	if bind := e.listener.GetBind(); strings.HasPrefix(bind, "unix://") {
		return bind
	}
	return strconv.FormatUint(uint64(e.port().GetNumber()), 10)
}

// servicesOn returns the services of a listener that take requests on a port.
func servicesOn(e *egress, port uint32) []*service {
	var out []*service
	for _, s := range e.services {
		if onPort(s, port) {
			out = append(out, s)
		}
	}
	return out
}

// allPorts returns the virtual hosts of all ports of a listener's services. Those
// of port 80 can be called without the port.
func (st *state) allPorts(p *proxy, e *egress) *virtualHosts {
	b := st.newVirtualHosts(p, e, e.services)
	ports := httpPorts(e.services)
	if !slices.Contains(ports, unknownHostPort) {
		ports = append(ports, unknownHostPort)
	}
	for _, port := range ports {
		form := portDomains
		if port == unknownHostPort {
			form = bothDomains
		}
		st.addPort(b, e, port, form)
	}
	return b
}

// httpPorts returns the ports on which some of the services take requests, sorted.
func httpPorts(services []*service) []uint32 {
	var out []uint32
	for _, s := range services {
		for _, port := range s.ports {
			if httpPort(port) {
				out = append(out, port.Number)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// addPort adds the virtual hosts of a port: what VirtualServices say of it, and the
// default routes of the services that none is about.
func (st *state) addPort(b *virtualHosts, e *egress, port uint32, form domainForm) {
	services := servicesOn(e, port)
	by := e.covering(services)
	names := sync.OnceValue(func() *hostSet { return newHostSet(hostNames(services)) })
	for _, v := range e.virtualServices() {
		own := by[v]
		if len(own) == 0 && port != unknownHostPort {
			continue
		}
		others := e.otherHosts(v, names)
		if len(own)+len(others) == 0 {
			continue
		}
		routes, leftOut := st.ruleRoutes(b.proxy, v, place{gateway: meshGateway, port: port})
		b.leftOut = append(b.leftOut, leftOut...)
		if len(routes) == 0 {
			continue // As if there were no such VirtualService.
		}
		if n := len(own) + len(others); exceeds(n*sizeOf(routes), st.settings.limits.RepeatedBytes) {
			reason := fmt.Errorf("its routes for %d hosts have more than %d bytes", n, st.settings.limits.RepeatedBytes)
			b.leftOut = append(b.leftOut, ineffectiveRoutes(v, reason))
			routes = (&envoy.RouteScope{}).FailingRoutes()
		}
		for _, svc := range own {
			b.addService(svc, port, form, routes)
		}
		for _, host := range others {
			b.addHost(host, port, form, routes)
		}
	}
	for _, svc := range services {
		if !b.has(svc.host, port) {
			b.addService(svc, port, form, []*routev3.Route{st.defaultRoute(b.proxy, svc, place{gateway: meshGateway, port: port})})
		}
	}
}

// hostNames returns the host names of services in lower case.
func hostNames(services []*service) []registry.Hostname {
	out := make([]registry.Hostname, len(services))
	for i, s := range services {
		out[i] = lower(s.host)
	}
	return out
}

// covering returns which of the services each VirtualService is about: those whose
// name it has, or the longest wildcard for it of all VirtualServices, whatever
// their age.
func (e *egress) covering(services []*service) map[*virtualService][]*service {
	out := make(map[*virtualService][]*service)
	for _, svc := range services {
		for _, v := range e.virtualServicesOf(lower(svc.host)) {
			out[v] = append(out[v], svc)
		}
	}
	return out
}

// otherHosts returns the hosts of a VirtualService that are no services, and the
// wildcards that cover none of the services, whose names in lower case are in a set.
func (e *egress) otherHosts(v *virtualService, services func() *hostSet) []registry.Hostname {
	var out []registry.Hostname
	for _, host := range v.hosts {
		if e.service(host) != nil {
			continue
		}
		if !host.IsWildcard() || !services().covers(host) {
			out = append(out, host)
		}
	}
	return out
}

// detectedRoutes returns the routes of a port whose protocol is detected, of a
// service with an address, or whose pods have listeners of their own: whatever the host
// of the request, it is for the service.
func (st *state) detectedRoutes(
	p *proxy, name string, host registry.Hostname, port uint32,
) (*routev3.RouteConfiguration, []error) {
	e := st.scopeOf(p).egressFor(port)
	if e == nil {
		return nil, nil
	}
	svc := e.service(host)
	if !detects(svc, port, p) {
		return nil, nil
	}
	routes, leftOut := st.serviceRoutes(p, e, svc, place{gateway: meshGateway, port: port})
	b := st.newVirtualHosts(p, nil, nil)
	b.add(lower(svc.host), port, []string{"*"}, routes)
	return routeConfiguration(name, b.hosts), leftOut
}

func detects(svc *service, port uint32, p *proxy) bool {
	found, ok := svc.port(port)
	return ok && found.Protocol == registry.ProtocolUnsupported && httpPort(found) &&
		(found.of.Headless() || len(addressesOf(svc, p)) > 0)
}

// serviceRoutes returns the routes of a port of one service: those of the first
// VirtualService that has any for it, else the default route; and what is left out.
func (st *state) serviceRoutes(p *proxy, e *egress, svc *service, at place) ([]*routev3.Route, []error) {
	if onPort(svc, at.port) {
		for _, v := range e.virtualServicesOf(lower(svc.host)) {
			if routes, leftOut := st.ruleRoutes(p, v, at); len(routes) > 0 {
				return routes, leftOut
			}
		}
	}
	return []*routev3.Route{st.defaultRoute(p, svc, at)}, nil
}
