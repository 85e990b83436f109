// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"slices"
	"strconv"
	"strings"

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
		return routeConfiguration(name, append(b.hosts, st.catchAll(p))), append(b.leftOut, st.leftOutOf(scope, e)...)
	}
	if port, ok := envoy.ParseHTTPRouteName(name); ok {
		e := scope.egressFor(port)
		if e == nil {
			return nil, nil
		}
		b := st.newVirtualHosts(p, e, servicesOn(e, port))
		b.addPorts(e, []portForm{{port, bareDomains}})
		return routeConfiguration(name, append(b.hosts, st.catchAll(p))), append(b.leftOut, st.leftOutOf(scope, e)...)
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
	if bind := e.listener.GetBind(); strings.HasPrefix(bind, unixScheme) {
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
	forms := make([]portForm, 0, len(ports))
	for _, port := range ports {
		form := portDomains
		if port == unknownHostPort {
			form = bothDomains
		}
		forms = append(forms, portForm{port, form})
	}
	b.addPorts(e, forms)
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
			routes, missing := st.ruleRoutes(p, v, at)
			if len(routes) == 0 {
				continue
			}
			if limit := st.settings.limits.RepeatedBytes; exceeds(svc.position(at.port)*sizeOf(routes), limit) {
				routes = st.routeScope(p, v.namespace, at).FailingRoutes()
				missing = append(missing, leftOut(v.config, "spec.http", failedRequests(tooManyRepetitions(limit))))
			}
			return routes, missing
		}
	}
	return []*routev3.Route{st.defaultRoute(p, svc, at)}, nil
}
