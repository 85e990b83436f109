// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"slices"

	"github.com/pilotkit/pilotkit/registry"
)

// gatewayBudget is that of a router's route configuration, in which hosts with the same
// routes share a virtual host: a VirtualService for one of them alone makes another one,
// and repeats in it what the others have.
type gatewayBudget struct {
	routeBudget
	groups map[registry.Hostname]*hostGroup
	// all are the groups that there are or were.
	all []*hostGroup
}

// hostGroup are hosts with the same routes. It is divided when a newer VirtualService has
// routes for some of them.
type hostGroup struct {
	hosts int
	// newest has routes for the hosts, and those that the hosts had before; nil: none has.
	newest *serverRoutes
	before *hostGroup
}

// newGatewayBudget returns that of servers. The hosts of those that redirect have virtual
// hosts whatever their routes.
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

// take counts what a server has of a VirtualService, which is newer than those before it,
// or returns why it is left out whatever other namespaces have. Times says how often a
// client has it.
func (b *gatewayBudget) take(part *serverRoutes, times int) error {
	hits, size, names := make(map[*hostGroup]int), part.rules.size, 0
	for _, h := range part.names {
		group := b.groups[h]
		if hits[group]++; group == nil {
			names += 2*len(h) + 2*hostBytes // as a domain, and perhaps as the name
		}
	}
	if err := b.routeBudget.take(part.of, size*len(hits)+names, size*max(times, len(hits))); err != nil {
		return err
	}
	part.cost = routeCost{of: part.of, bytes: names}
	b.divide(part, hits)
	return nil
}

// divide gives hosts that have routes now that others of their groups do not have groups
// of their own.
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

// parts yields what has routes for the hosts of a group and is not left out, the oldest
// first.
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

// share leaves out what there is no room for. Parts come from the oldest to the newest.
// The costs are those with all of them, so that they do not depend on what is left out.
func (b *gatewayBudget) share(parts []*serverRoutes) {
	for _, g := range b.all {
		if g.hosts > 0 {
			b.shareHost(g.parts())
		}
	}
	for _, g := range b.all {
		if list := g.parts(); g.hosts > 0 && len(list) > 0 {
			narrowest := list[0] // It has a virtual host of its own because of this one.
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

// shareHost leaves out what would be too many routes in one virtual host.
func (b *gatewayBudget) shareHost(parts []*serverRoutes) {
	claims := make([]claim, len(parts))
	for i, part := range parts {
		claims[i] = claim{part.of.namespace, len(part.rules.routes)}
	}
	for i, over := range allot(b.limits.Routes, claims) {
		if over {
			parts[i].left = tooManyRoutes(b.limits.Routes)
		}
	}
}

// admitServers decides which routes are in a route configuration of a router, and builds
// them. It returns what is left out, of them or with them.
func (st *state) admitServers(p *proxy, servers []*gatewayServer, parts []*serverRoutes) []error {
	b := newGatewayBudget(st.settings.limits, servers)
	byAge := slices.Clone(parts)
	slices.SortStableFunc(byAge, func(x, y *serverRoutes) int { return compareVirtualServices(x.of, y.of) })
	var leftOut []error
	for _, part := range byAge {
		times := part.server.repetition(part.of)
		least := leastBytes * st.matchesOf(part.of)
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
