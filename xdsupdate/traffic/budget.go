// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/objects"
)

// Objects of many namespaces share limits: the size of a route configuration, the size of a
// listener, the clusters of a wildcard. If they exceed a limit together, the namespace with the
// largest total loses first, and its newest objects lose first.
//
// Each claim is ranked by the cumulative cost of its namespace up to and including that claim,
// oldest first. Claims are admitted by ascending rank, and the older of two equal claims comes
// first. A namespace whose claims total at most the limit divided by the number of namespaces
// therefore keeps all of them, regardless of other namespaces. That quotient is its guaranteed
// share. The previous result is not an input, because replicas, and a process before and after a
// restart, must agree. A namespace can therefore use capacity beyond its share only until other
// namespaces need it.

// claim is the part of a limit that an object of a namespace needs.
type claim struct {
	created         time.Time
	name, namespace string
	cost            int
}

func claimOf(c *configstore.Config, cost int) claim {
	return claim{c.CreationTimestamp, c.Name, c.Namespace, cost}
}

// byShares returns the positions of claims in the order of admission.
func byShares(claims []claim) []int {
	order, with, sums := make([]int, len(claims)), make([]int, len(claims)), make(map[string]int)
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int {
		a, b := claims[i], claims[j]
		return cmp.Or(a.created.Compare(b.created), cmp.Compare(a.name, b.name), cmp.Compare(a.namespace, b.namespace))
	})
	for _, i := range order {
		sums[claims[i].namespace] += claims[i].cost
		with[i] = sums[claims[i].namespace]
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(with[i], with[j]) })
	return order
}

// allot reports for each claim whether it exceeds the limit: a claim is rejected if it does not fit
// together with the claims admitted before it. The result is nil if all claims fit.
func allot(limit int, claims []claim) (over []bool) {
	sum := 0
	for _, c := range claims {
		sum += c.cost
	}
	if !exceeds(sum, limit) {
		return nil
	}
	over, sum = make([]bool, len(claims)), 0
	for _, i := range byShares(claims) {
		if over[i] = exceeds(sum+claims[i].cost, limit); !over[i] {
			sum += claims[i].cost
		}
	}
	return over
}

// VirtualServices of many namespaces share a route configuration. Its limits (SharedBytes,
// VirtualHosts, Routes) are allotted to the namespaces. The result is the same in all replicas.

// routeBudget limits the routes that are built for a route configuration before the final
// allotment: each namespace can build at most the size that all namespaces may have together.
type routeBudget struct {
	limits Limits
	built  map[string]int // bytes by namespace
}

// hostBytes is an upper bound for the size of a virtual host without its name, domains and routes.
const hostBytes = 32

// leastBytes is the minimum size attributed to each match of a VirtualService. Checking it before
// the routes are built avoids building routes that exceed limits. Usual matches are larger.
const leastBytes = 256

// check returns an error if a VirtualService exceeds limits independently of other namespaces. The
// sizes are its bytes in this route configuration and in all copies that a client has.
func (b *routeBudget) check(v *objects.VirtualService, bytes, everywhere int) error {
	switch {
	case exceeds(everywhere, b.limits.RepeatedBytes):
		return tooManyRepetitions(b.limits.RepeatedBytes)
	case exceeds(b.built[v.Namespace]+bytes, b.limits.SharedBytes):
		return tooManyBytes("route configuration", b.limits.SharedBytes)
	default:
		return nil
	}
}

// take is like check, for a VirtualService that is built. It counts the bytes if there is no error.
func (b *routeBudget) take(v *objects.VirtualService, bytes, everywhere int) error {
	err := b.check(v, bytes, everywhere)
	if err == nil {
		b.built[v.Namespace] += bytes
	}
	return err
}

// budgeted are the routes of a VirtualService in a route configuration.
type budgeted struct {
	of *objects.VirtualService
	// rules are nil unless the budget admits building them.
	rules *builtRules
	// bytes and hosts are their shares of the route configuration's limits.
	bytes, hosts int
	// left says why the routes are left out. It is nil if they are not.
	left error
}

// admit builds the routes of a part, unless the number of their matches already exceeds limits, and
// calls take, which counts them. The routes are a number of times in the resources of a client. The
// result has the errors for parts of the routes.
func (b *routeBudget) admit(part *budgeted, matches, times int, build func() *builtRules, take func() error) []error {
	least := leastBytes * matches
	if part.left = b.check(part.of, least, least*times); part.left != nil {
		return nil
	}
	if part.rules = build(); len(part.rules.routes) > 0 {
		part.left = take()
	}
	return part.rules.leftOut
}

// allot leaves out the parts that exceed limits together.
func (b *routeBudget) allot(parts []*budgeted) {
	for _, limited := range []struct {
		limit  int
		cost   func(*budgeted) int
		reason error
	}{
		{b.limits.SharedBytes, func(p *budgeted) int { return p.bytes }, tooManyBytes("route configuration", b.limits.SharedBytes)},
		{
			b.limits.VirtualHosts, func(p *budgeted) int { return p.hosts },
			fmt.Errorf("the VirtualServices of the route configuration would have more than %d virtual hosts%s", b.limits.VirtualHosts, beyondShare),
		},
	} {
		claims := make([]claim, len(parts))
		for i, part := range parts {
			if claims[i] = claimOf(part.of.Config, 0); part.left == nil {
				claims[i].cost = limited.cost(part)
			}
		}
		for i, over := range allot(limited.limit, claims) {
			if over {
				parts[i].left = limited.reason
			}
		}
	}
}

// beyondShare is the end of error messages about shared limits.
const beyondShare = ", and its namespace has no room for it in its share"

func tooManyBytes(of string, limit int) error {
	return fmt.Errorf("the VirtualServices of the %s would have more than %d bytes%s", of, limit, beyondShare)
}

func tooManyRepetitions(limit int) error {
	return fmt.Errorf("its routes for all hosts, ports and servers have more than %d bytes", limit)
}

func tooManyRoutes(limit int) error {
	return fmt.Errorf("a virtual host of it has more than %d routes", limit)
}

// notServed returns the error for a VirtualService that is left out of a route configuration.
func notServed(v *objects.VirtualService, reason error) error {
	return leftOut(v.Config, "spec.http",
		fmt.Errorf("its routes are left out, and requests to hosts that no other VirtualService is for are answered with 500: %w", reason))
}

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
	part.bytes = names
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
				if part.bytes += part.rules.size; len(part.names) < len(narrowest.names) {
					narrowest = part
				}
			}
			narrowest.hosts++
		}
	}
	all := make([]*budgeted, len(parts))
	for i, part := range parts {
		all[i] = &part.budgeted
	}
	b.allot(all)
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
		build := func() *builtRules { return st.gatewayRules(p, part.of, part.at()) }
		leftOut = append(leftOut, b.admit(&part.budgeted, st.MatchesOf(part.of), times, build, func() error { return b.take(part, times) })...)
	}
	b.share(byAge)
	for _, part := range byAge {
		if part.left != nil {
			leftOut = append(leftOut, notServed(part.of, part.left))
		}
	}
	return leftOut
}
