// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"slices"
	"sync"

	"github.com/pilotkit/pilotkit/internal/xdsbuild"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/hostname"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/mesh"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/objects"
)

// portForm is a port of a route configuration, with the form of its domains.
type portForm struct {
	number uint32
	form   domainForm
}

// portRoutes are the routes of a VirtualService on a port.
type portRoutes struct {
	budgeted
	port portForm
	// own are services, and others are hosts without a service. At least one of the lists is not
	// empty.
	own    []*mesh.Service
	others []registry.Hostname
}

// addPorts adds the virtual hosts of ports: the routes of VirtualServices, and default routes for
// all other services.
func (b *virtualHosts) addPorts(e *mesh.Egress, ports []portForm) {
	b.domains["*"] = struct{}{} // Reserved for catchAll: Envoy would reject the route configuration if another host had this name.
	parts := make([][]*portRoutes, len(ports))
	for i, port := range ports {
		parts[i] = b.portRoutes(e, port)
	}
	b.admit(slices.Concat(parts...))
	for i, port := range ports {
		for _, part := range parts[i] {
			b.addRoutes(part)
		}
		for _, svc := range servicesOn(e, port.number) {
			if !b.has(svc.Host, port.number) {
				b.addService(svc, port.number, port.form, b.st.defaultRules(b.proxy, svc, place{gateway: objects.MeshGateway, port: port.number}))
			}
		}
	}
}

// portRoutes returns the VirtualServices with hosts on a port, in the order of precedence.
func (b *virtualHosts) portRoutes(e *mesh.Egress, port portForm) []*portRoutes {
	services := servicesOn(e, port.number)
	by := covering(e, services)
	names := sync.OnceValue(func() *hostname.Set { return hostname.NewSet(hostNames(services)) })
	var out []*portRoutes
	for _, v := range e.VirtualServices() {
		part := &portRoutes{budgeted: budgeted{of: v}, port: port, own: by[v]}
		if len(part.own) == 0 && port.number != unknownHostPort {
			continue
		}
		if part.others = otherHosts(e, v, names); len(part.own)+len(part.others) > 0 {
			out = append(out, part)
		}
	}
	return out
}

// admit decides which routes fit, and builds them.
func (b *virtualHosts) admit(parts []*portRoutes) {
	byAge := slices.Clone(parts)
	slices.SortStableFunc(byAge, func(x, y *portRoutes) int { return objects.Compare(x.of, y.of) })
	budget, all := routeBudget{b.st.settings.limits, make(map[string]int)}, make([]*budgeted, len(parts))
	for i, part := range byAge {
		all[i] = &part.budgeted
		times, at := part.repetition(), place{gateway: objects.MeshGateway, port: part.port.number}
		build := func() *builtRules { return b.st.sidecarRules(b.proxy, part.of, at) }
		b.leftOut = append(b.leftOut, budget.admit(all[i], b.st.MatchesOf(part.of), times, build, func() error {
			part.bytes, part.hosts = part.bytesWith(part.rules.size), len(part.others)
			return budget.take(part.of, part.bytes, part.rules.size*times)
		})...)
	}
	budget.allot(all)
	for _, part := range byAge {
		if part.left != nil { // its requests fail
			part.rules = &builtRules{of: part.of, routes: (&xdsbuild.RouteScope{}).FailingRoutes()}
			b.leftOut = append(b.leftOut, leftOut(part.of.Config, "spec.http", failedRequests(part.left)))
		}
	}
}

// bytesWith returns approximately the size that routes of a size add to a route configuration, which
// already contains the names of the services.
func (r *portRoutes) bytesWith(size int) int {
	n := (len(r.own) + len(r.others)) * size
	for _, h := range r.others {
		n += 3*len(h) + hostBytes
	}
	return n
}

// repetition returns the number of copies of the routes that a client has on this and other ports.
// A service repeats them for each of its ports.
func (r *portRoutes) repetition() int {
	times := len(r.others)
	for _, svc := range r.own {
		times += svc.Position(r.port.number)
	}
	return times
}

// addRoutes adds the virtual hosts of a VirtualService. If its routes exceed a limit, all requests
// to these hosts fail, and hosts without a service share one virtual host.
func (b *virtualHosts) addRoutes(r *portRoutes) {
	if len(r.rules.routes) == 0 {
		return // As without the VirtualService.
	}
	if b.st.leavesRules(b.proxy, r.of) == ads.Absent {
		r.others = nil
	}
	for _, svc := range r.own {
		b.addService(svc, r.port.number, r.port.form, r.rules)
	}
	if r.left != nil {
		b.addHosts(r.others, r.port, r.rules)
		return
	}
	for _, host := range r.others {
		b.addHosts([]registry.Hostname{host}, r.port, r.rules)
	}
}

func hostNames(services []*mesh.Service) []registry.Hostname {
	out := make([]registry.Hostname, len(services))
	for i, s := range services {
		out[i] = hostname.Lower(s.Host)
	}
	return out
}

// covering returns the services of each VirtualService: the services whose name is one of its
// hosts, or whose longest wildcard in any VirtualService is one of its hosts, regardless of age.
func covering(e *mesh.Egress, services []*mesh.Service) map[*objects.VirtualService][]*mesh.Service {
	out := make(map[*objects.VirtualService][]*mesh.Service)
	for _, svc := range services {
		for _, v := range e.VirtualServicesOf(hostname.Lower(svc.Host)) {
			out[v] = append(out[v], svc)
		}
	}
	return out
}

// otherHosts returns the hosts of a VirtualService without a service, and the wildcards that cover
// no service in the set. The names in the set are in lower case.
func otherHosts(e *mesh.Egress, v *objects.VirtualService, services func() *hostname.Set) []registry.Hostname {
	var out []registry.Hostname
	for _, host := range v.Hosts {
		if e.Service(host) != nil {
			continue
		}
		if !host.IsWildcard() || !services().Covers(host) {
			out = append(out, host)
		}
	}
	return out
}
