// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"fmt"
	"slices"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/proto"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// gatewayRoutes returns the route configuration of a router by its name, nil for
// none, and what is left out of it.
func (st *state) gatewayRoutes(p *proxy, name string) (*routev3.RouteConfiguration, []error) {
	servers := st.routerOf(p).routes[name]
	if len(servers) == 0 {
		return nil, nil
	}
	var leftOut []error
	hosts := gatewayHosts{byName: make(map[registry.Hostname]*gatewayHost)}
	for _, s := range servers {
		for _, v := range st.virtualServicesOf(p, s) {
			names := s.hostsOf(v)
			if len(names) == 0 || len(v.spec.GetHttp()) == 0 {
				continue
			}
			// One list for all hosts, by which they are known to be alike.
			at := place{gateway: s.gateway.String(), port: s.port(), tls: s.tls()}
			rules := st.gatewayRules(p, v, at)
			leftOut = append(leftOut, rules.leftOut...)
			if len(rules.routes) > 0 {
				for _, h := range names {
					hosts.get(h).add(rules, s.redirects())
				}
			}
		}
		if s.redirects() {
			for _, h := range s.hosts {
				hosts.get(h.name).redirects = true
			}
		}
	}
	port := servers[0].port()
	var out []*routev3.VirtualHost
	for _, h := range hosts.build(port, st.settings.countsAttempts()) {
		if err := checkVirtualHost(h); err != nil {
			leftOut = append(leftOut, err)
		} else {
			out = append(out, h)
		}
	}
	if len(out) == 0 {
		out = []*routev3.VirtualHost{{Name: fmt.Sprintf("blackhole:%d", port), Domains: []string{"*"}}}
	}
	return routeConfiguration(name, out), leftOut
}

// gatewayRules are the routes that a VirtualService has by one server.
type gatewayRules struct {
	of      *virtualService
	routes  []*routev3.Route
	leftOut []error
}

// gatewayHost is a host that a router serves HTTP for.
type gatewayHost struct {
	name registry.Hostname
	// rules are in the order of the servers and, within one, of the VirtualServices.
	rules []*gatewayRules
	// redirects: plain requests are redirected to HTTPS.
	redirects bool
}

func (h *gatewayHost) add(rules *gatewayRules, redirects bool) {
	h.rules = append(h.rules, rules)
	h.redirects = h.redirects || redirects
}

// routes joins the rules. What a VirtualService has by several servers alike is
// there once, at its first place.
func (h *gatewayHost) routes() []*routev3.Route {
	lists := make([][]*routev3.Route, 0, len(h.rules))
	for i, rules := range h.rules {
		routes := rules.routes
		for _, earlier := range h.rules[:i] {
			if earlier.of == rules.of {
				routes = without(routes, earlier.routes)
			}
		}
		lists = append(lists, routes)
	}
	return envoy.JoinRoutes(lists...)
}

func without(routes, others []*routev3.Route) []*routev3.Route {
	return slices.DeleteFunc(slices.Clone(routes), func(r *routev3.Route) bool {
		return slices.ContainsFunc(others, func(o *routev3.Route) bool { return proto.Equal(r, o) })
	})
}

// alike reports whether two hosts can share a virtual host.
func (h *gatewayHost) alike(o *gatewayHost) bool {
	return h.redirects == o.redirects && slices.Equal(h.rules, o.rules)
}

// gatewayHosts are the hosts of a route configuration.
type gatewayHosts struct {
	byName map[registry.Hostname]*gatewayHost
	sorted []*gatewayHost
}

func (g *gatewayHosts) get(name registry.Hostname) *gatewayHost {
	h := g.byName[name]
	if h == nil {
		h = &gatewayHost{name: name}
		g.byName[name] = h
		g.sorted = append(g.sorted, h)
	}
	return h
}

// build returns the virtual hosts, each named after its first host.
func (g *gatewayHosts) build(port uint32, countsAttempts bool) []*routev3.VirtualHost {
	type shared struct {
		first *gatewayHost
		host  *routev3.VirtualHost
	}
	var out []*routev3.VirtualHost
	byRules := make(map[*gatewayRules][]shared) // nil: hosts without any
	for _, h := range g.sorted {
		var key *gatewayRules
		if len(h.rules) > 0 {
			key = h.rules[0]
		}
		i := slices.IndexFunc(byRules[key], func(s shared) bool { return s.first.alike(h) })
		if i >= 0 {
			host := byRules[key][i].host
			host.Domains = append(host.Domains, domainOf(h.name))
			continue
		}
		host := &routev3.VirtualHost{
			Name: fmt.Sprintf("%s:%d", h.name, port), Domains: []string{domainOf(h.name)},
			Routes: h.routes(), IncludeRequestAttemptCount: countsAttempts,
		}
		if h.redirects {
			host.RequireTls = routev3.VirtualHost_ALL
		}
		byRules[key] = append(byRules[key], shared{h, host})
		out = append(out, host)
	}
	return out
}
