// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"fmt"
	"slices"
	"strconv"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/proto"

	"github.com/pilotkit/pilotkit/internal/xdsbuild"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/objects"
)

// gatewayRoutes returns a route configuration of a router by its name, or nil, and the errors for
// parts of it that are left out.
func (st *state) gatewayRoutes(p *proxy, name string) (*routev3.RouteConfiguration, []error) {
	router := st.routerOf(p)
	servers, chains := router.routes[name], router.chainNamesOf(name)
	if len(servers) == 0 {
		return nil, nil
	}
	port := servers[0].port()
	servers = p.withoutAbsent(servers)
	parts := st.serverRoutes(p, servers, chains)
	leftOut := st.admitServers(p, servers, parts)
	hosts := newGatewayHosts(servers, parts)
	hosts.addMisdirected(p, name, servers, chains)
	var out []*routev3.VirtualHost
	for _, h := range hosts.build(st.made, port, st.settings.countsAttempts(p)) {
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

// withoutAbsent returns the servers whose Gateways contribute to a route configuration.
func (p *proxy) withoutAbsent(servers []*gatewayServer) []*gatewayServer {
	if p.leaving == nil {
		return servers
	}
	return slices.DeleteFunc(slices.Clone(servers), func(s *gatewayServer) bool {
		return p.leaves(s.gateway.Config, s.gateway) == ads.Absent
	})
}

// serverRoutes are the routes of a VirtualService at a server.
type serverRoutes struct {
	budgeted
	server *gatewayServer
	// names are the hosts that both have in common. There is at least one.
	names []registry.Hostname
}

// serverRoutes returns the parts of the servers, grouped by server. Chains are the filter chains of
// their listener, or nil without TLS.
func (st *state) serverRoutes(p *proxy, servers []*gatewayServer, chains *chainNames) []*serverRoutes {
	var parts []*serverRoutes
	for _, s := range servers {
		for _, v := range st.virtualServicesOf(p, s) {
			if len(v.Spec.GetHttp()) == 0 || st.leavesRules(p, v) == ads.Absent {
				continue
			}
			if names := chains.allowed(s, s.hostsOf(v)); len(names) > 0 {
				parts = append(parts, &serverRoutes{budgeted: budgeted{of: v}, server: s, names: names})
			}
		}
	}
	return parts
}

// at returns the place that the routes are built for.
func (r *serverRoutes) at() place {
	return place{gateway: r.server.gateway.String(), port: r.server.port(), tls: r.server.tls()}
}

// gatewayHost is a host that a router serves by HTTP.
type gatewayHost struct {
	name registry.Hostname
	// rules are in the order of the servers, and for one server in the order of the
	// VirtualServices.
	rules []*builtRules
	// redirects is set if plain HTTP requests are redirected to HTTPS.
	redirects bool
}

func (h *gatewayHost) add(rules *builtRules, redirects bool) {
	h.rules = append(h.rules, rules)
	h.redirects = h.redirects || redirects
}

// routes joins the rules. If several servers have equal routes of a VirtualService, only the first
// copy is kept.
func (h *gatewayHost) routes() []*routev3.Route {
	lists := make([][]*routev3.Route, 0, len(h.rules))
	by := make(map[*objects.VirtualService][]*builtRules)
	for _, rules := range h.rules {
		lists = append(lists, rules.without(by[rules.of]))
		by[rules.of] = append(by[rules.of], rules)
	}
	return xdsbuild.JoinRoutes(lists...)
}

// without returns the routes that do not occur in others.
func (r *builtRules) without(others []*builtRules) []*routev3.Route {
	if len(others) == 0 {
		return r.routes
	}
	known := make(map[string]struct{})
	for _, o := range others {
		for _, route := range o.routes {
			known[encoding(route)] = struct{}{}
		}
	}
	return slices.DeleteFunc(slices.Clone(r.routes), func(route *routev3.Route) bool {
		_, again := known[encoding(route)]
		return again
	})
}

// encoding is equal for equal routes.
func encoding(r *routev3.Route) string {
	text, err := proto.MarshalOptions{Deterministic: true}.Marshal(r)
	if err != nil {
		return fmt.Sprintf("%p", r) // equal only to itself
	}
	return string(text)
}

// alikeKey is equal for hosts that can share a virtual host. It consists of the numbers of the
// host's rules in the route configuration.
func (h *gatewayHost) alikeKey(numbers map[*builtRules]int) string {
	key := strconv.AppendBool(nil, h.redirects)
	for _, rules := range h.rules {
		n, known := numbers[rules]
		if !known {
			n = len(numbers)
			numbers[rules] = n
		}
		key = strconv.AppendInt(append(key, ' '), int64(n), 10)
	}
	return string(key)
}

// gatewayHosts are the hosts of a route configuration.
type gatewayHosts struct {
	byName map[registry.Hostname]*gatewayHost
	sorted []*gatewayHost
}

// newGatewayHosts returns the hosts of servers with their routes. Hosts whose routes all exceed
// limits come last, and their requests fail.
func newGatewayHosts(servers []*gatewayServer, parts []*serverRoutes) *gatewayHosts {
	g := &gatewayHosts{byName: make(map[registry.Hostname]*gatewayHost)}
	var over []*serverRoutes
	for _, s := range servers {
		for len(parts) > 0 && parts[0].server == s {
			part := parts[0]
			if parts = parts[1:]; part.left != nil {
				over = append(over, part)
				continue
			}
			if len(part.rules.routes) == 0 {
				continue
			}
			// The hosts share one list, so that alikeKey finds them equal.
			for _, h := range part.names {
				g.get(h).add(part.rules, s.redirects())
			}
		}
		if s.redirects() {
			for _, h := range s.hosts {
				g.get(h.name).redirects = true
			}
		}
	}
	failing := &builtRules{routes: (&xdsbuild.RouteScope{}).FailingRoutes()}
	for _, part := range over {
		for _, h := range part.names {
			if g.byName[h] == nil {
				g.get(h).add(failing, false)
			}
		}
	}
	return g
}

// addMisdirected adds the hosts of the other TLS servers on the port, with routes that answer with
// 421, and keeps their wildcards from covering the route configuration's own hosts. Chains is nil
// without TLS.
func (g *gatewayHosts) addMisdirected(p *proxy, routes string, servers []*gatewayServer, chains *chainNames) {
	if chains == nil {
		return
	}
	misdirected, unrouted := chains.missing(routes, servers, func(h registry.Hostname) bool { return g.byName[h] != nil })
	for _, h := range unrouted {
		g.get(h)
	}
	rules := &builtRules{routes: xdsbuild.MisdirectedRoutes()}
	for _, h := range misdirected {
		if !chains.absent(p, h) {
			g.get(h).add(rules, false)
		}
	}
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

// build returns the virtual hosts, and records them. Each is named after its first host.
func (g *gatewayHosts) build(record *made, port uint32, countsAttempts bool) []*routev3.VirtualHost {
	var out []*routev3.VirtualHost
	shared, numbers := make(map[string]*routev3.VirtualHost), make(map[*builtRules]int)
	for _, h := range g.sorted {
		key := h.alikeKey(numbers)
		if host := shared[key]; host != nil {
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
		record.noteHost(host.GetName(), h.rules...)
		shared[key] = host
		out = append(out, host)
	}
	return out
}
