// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"fmt"
	"slices"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/hostname"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/mesh"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/objects"
)

// unknownHostPort is the port for VirtualService hosts without a service.
const unknownHostPort = 80

// httpPort reports whether requests to a port can be routed as HTTP, because its protocol is HTTP
// or must be detected by the client.
func httpPort(p mesh.ServicePort) bool {
	return (p.Protocol.IsHTTP() || p.Protocol == registry.ProtocolUnsupported) && p.Of.Resolution != registry.Alias
}

// onPort reports whether requests to a port of a service can be routed as HTTP.
func onPort(svc *mesh.Service, number uint32) bool {
	p, ok := svc.Port(number)
	return ok && httpPort(p)
}

// outboundRoutes returns a route configuration of a sidecar by its name, or nil, and the errors for
// parts of it that are left out. The names are:
//
//	80               requests to port 80, or to an HTTP proxy listener on it
//	unix:///path     requests to the listener with this bind
//	HOST:PORT        requests to the address of a service, or to a pod of a headless service,
//	                 on a port whose protocol the sidecar detects
func (st *state) outboundRoutes(p *proxy, name string) (*routev3.RouteConfiguration, []error) {
	scope := st.scopeOf(p)
	if e := scope.EgressNamed(name); e != nil {
		b := st.allPorts(p, e)
		return routeConfiguration(name, append(b.hosts, st.catchAll(p))), append(b.leftOut, st.leftOutOf(scope, e)...)
	}
	if port, ok := envoy.ParseHTTPRouteName(name); ok {
		e := scope.EgressFor(port)
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

// servicesOn returns the services of a listener with HTTP on a port.
func servicesOn(e *mesh.Egress, port uint32) []*mesh.Service {
	var out []*mesh.Service
	for _, s := range e.Services {
		if onPort(s, port) {
			out = append(out, s)
		}
	}
	return out
}

// allPorts returns the virtual hosts of all ports of a listener's services. Port 80 may be omitted
// in requests.
func (st *state) allPorts(p *proxy, e *mesh.Egress) *virtualHosts {
	b := st.newVirtualHosts(p, e, e.Services)
	ports := httpPorts(e.Services)
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

// httpPorts returns the HTTP ports of services, sorted.
func httpPorts(services []*mesh.Service) []uint32 {
	var out []uint32
	for _, s := range services {
		for _, port := range s.Ports {
			if httpPort(port) {
				out = append(out, port.Number)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// detectedRoutes returns the routes for a port with protocol detection, of a service with an
// address or with a listener for each pod. Every request belongs to the service, regardless of its
// host.
func (st *state) detectedRoutes(
	p *proxy, name string, host registry.Hostname, port uint32,
) (*routev3.RouteConfiguration, []error) {
	e := st.scopeOf(p).EgressFor(port)
	if e == nil {
		return nil, nil
	}
	svc := e.Service(host)
	if !detects(svc, port, p) {
		return nil, nil
	}
	rules := st.serviceRoutes(p, e, svc, place{gateway: objects.MeshGateway, port: port})
	b := st.newVirtualHosts(p, nil, nil)
	b.add(hostname.Lower(svc.Host), port, []string{"*"}, rules)
	return routeConfiguration(name, b.hosts), rules.leftOut
}

func detects(svc *mesh.Service, port uint32, p *proxy) bool {
	found, ok := svc.Port(port)
	return ok && found.Protocol == registry.ProtocolUnsupported && httpPort(found) &&
		(found.Of.Headless() || len(addressesOf(svc, p)) > 0)
}

// serviceRoutes returns the routes of a service port. They come from the first VirtualService with any
// route for the port, or else are the default route.
func (st *state) serviceRoutes(p *proxy, e *mesh.Egress, svc *mesh.Service, at place) *builtRules {
	if onPort(svc, at.port) {
		for _, v := range e.VirtualServicesOf(hostname.Lower(svc.Host)) {
			rules := st.sidecarRules(p, v, at)
			if len(rules.routes) == 0 {
				continue
			}
			if limit := st.settings.limits.RepeatedBytes; exceeds(svc.Position(at.port)*rules.size, limit) {
				missing := leftOut(v.Config, "spec.http", failedRequests(tooManyRepetitions(limit)))
				rules = &builtRules{
					of: v, routes: st.routeScope(p, v.Namespace, at).FailingRoutes(),
					leftOut: append(slices.Clip(rules.leftOut), missing),
				}
			}
			return rules
		}
	}
	return st.defaultRules(p, svc, at)
}

// leftOutOf returns the errors for services that a listener of a Sidecar lacks.
func (st *state) leftOutOf(s *mesh.Scope, e *mesh.Egress) []error {
	if e.Dropped == "" {
		return nil
	}
	reason := fmt.Errorf("%s, and services that are newer, are not imported: with the listeners before they would be more than %d",
		e.Dropped, st.settings.limits.Imports)
	return []error{leftOut(s.Sidecar.Config, objects.Element("spec.egress", slices.Index(s.Egress, e)), reason)}
}
