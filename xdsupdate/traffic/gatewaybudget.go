// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"slices"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/objects"
)

// gatewayBudget enforces the limits of a router's route configuration. There, hosts with the same
// routes share a virtual host. A VirtualService for only some of these hosts splits off another
// virtual host, which repeats the routes of the others.
type gatewayBudget struct {
	routeBudget
	groups map[registry.Hostname]*hostGroup
	// all contains all current and former groups.
	all []*hostGroup
}

// hostGroup is a set of hosts with the same routes. It is divided when a newer VirtualService adds
// routes for some of them.
type hostGroup struct {
	hosts int
	// newest is the newest part with routes for the hosts, or nil, and before is the group without
	// it.
	newest *serverRoutes
	before *hostGroup
}

// newGatewayBudget returns the budget of a route configuration. Hosts of servers that redirect to
// HTTPS have virtual hosts even without routes.
func newGatewayBudget(limits Limits, servers []*gatewayServer) *gatewayBudget {
	b := &gatewayBudget{routeBudget: routeBudget{limits, make(map[string]int)}, groups: make(map[registry.Hostname]*hostGroup)}
	redirected := &hostGroup{}
	for _, s := range servers {
		if !s.redirects() {
			continue
		}
		for _, h := range s.hosts {
			if b.groups[h.name] == nil {
				b.groups[h.name] = redirected
				redirected.hosts++
			}
		}
	}
	return b
}

// take counts the routes of a VirtualService at a server. The VirtualService must be newer than
// those before. The error says why it is left out independently of other namespaces. Times is the
// number of copies that a client has.
func (b *gatewayBudget) take(part *serverRoutes, times int) error {
	hits, size, names := make(map[*hostGroup]int), part.rules.size, 0
	for _, h := range part.names {
		group := b.groups[h]
		if hits[group]++; group == nil {
			names += 2*len(h) + 2*hostBytes // once as a domain, and possibly once as the virtual host's name
		}
	}
	if err := b.routeBudget.take(part.of, size*len(hits)+names, size*max(times, len(hits))); err != nil {
		return err
	}
	part.cost = routeCost{of: part.of, bytes: names}
	b.divide(part, hits)
	return nil
}

// divide moves the hosts of a part to new groups, because they now have other routes than the rest
// of their old groups.
func (b *gatewayBudget) divide(part *serverRoutes, hits map[*hostGroup]int) {
	next := make(map[*hostGroup]*hostGroup, len(hits))
	for _, h := range part.names {
		group := b.groups[h]
		if next[group] == nil {
			next[group] = &hostGroup{hosts: hits[group], newest: part, before: group}
			b.all = append(b.all, next[group])
			if group != nil {
				group.hosts -= hits[group]
			}
		}
		b.groups[h] = next[group]
	}
}

// parts returns the parts with routes for the hosts of a group, oldest first, except parts that are
// left out.
func (g *hostGroup) parts() []*serverRoutes {
	var out []*serverRoutes
	for ; g != nil && g.newest != nil; g = g.before {
		if g.newest.left == nil {
			out = append(out, g.newest)
		}
	}
	slices.Reverse(out)
	return out
}

// share leaves out the parts that exceed the limits. Costs are computed with all parts, so that they
// do not depend on the decisions.
func (b *gatewayBudget) share(parts []*serverRoutes) {
	for _, g := range b.all {
		if g.hosts > 0 {
			b.shareHost(g.parts())
		}
	}
	for _, g := range b.all {
		if list := g.parts(); g.hosts > 0 && len(list) > 0 {
			narrowest := list[0] // The virtual host exists separately because of this part.
			for _, part := range list {
				if part.cost.bytes += part.rules.size; len(part.names) < len(narrowest.names) {
					narrowest = part
				}
			}
			narrowest.cost.hosts++
		}
	}
	parts = slices.DeleteFunc(slices.Clone(parts), func(part *serverRoutes) bool { return part.left != nil || part.cost.of == nil })
	costs := make([]routeCost, len(parts))
	for i, part := range parts {
		costs[i] = part.cost
	}
	for i, err := range b.allot(costs) {
		parts[i].left = err
	}
}

// shareHost leaves out parts that exceed the routes of one virtual host.
func (b *gatewayBudget) shareHost(parts []*serverRoutes) {
	claims := make([]claim, len(parts))
	for i, part := range parts {
		claims[i] = claimOf(part.of.Config, len(part.rules.routes))
	}
	for i, over := range allot(b.limits.Routes, claims) {
		if over {
			parts[i].left = tooManyRoutes(b.limits.Routes)
		}
	}
}

// admitServers decides which parts are in a route configuration of a router, and builds their
// routes. It returns the errors for all routes that are left out.
func (st *state) admitServers(p *proxy, servers []*gatewayServer, parts []*serverRoutes) []error {
	b := newGatewayBudget(st.settings.limits, servers)
	byAge := slices.Clone(parts)
	slices.SortStableFunc(byAge, func(x, y *serverRoutes) int { return objects.Compare(x.of, y.of) })
	var leftOut []error
	for _, part := range byAge {
		times := part.server.repetition(part.of)
		least := leastBytes * st.MatchesOf(part.of)
		if part.left = b.check(part.of, least, least*times); part.left != nil {
			continue
		}
		part.rules = st.gatewayRules(p, part.of, part.at())
		leftOut = append(leftOut, part.rules.leftOut...)
		if len(part.rules.routes) > 0 {
			part.left = b.take(part, times)
		}
	}
	b.share(byAge)
	for _, part := range byAge {
		if part.left != nil {
			leftOut = append(leftOut, notServed(part.of, part.left))
		}
	}
	return leftOut
}
