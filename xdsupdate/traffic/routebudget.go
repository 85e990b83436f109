// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"fmt"
	"slices"

	"github.com/pilotkit/pilotkit/registry"
)

// A route configuration is shared by the VirtualServices of many namespaces, and has
// limits (SharedBytes, VirtualHosts, Routes). VirtualServices are taken into it from the
// oldest to the newest, each if it fits with those before it. So what is sent of one never
// depends on a newer one, and is the same in all replicas.

// routeBudget is what the VirtualServices that were taken come to.
type routeBudget struct {
	limits Limits
	bytes  int
	hosts  int
}

// hostBytes is more than a virtual host has but for its name, domains and routes.
const hostBytes = 32

// leastBytes is what each match of a VirtualService counts at least: before its routes are
// built, so that those that there is no room for cost nothing. A usual one has more.
const leastBytes = 256

// check returns why there is no room for a VirtualService with these bytes here, and these
// wherever a client has it.
func (b *routeBudget) check(bytes, everywhere int) error {
	switch {
	case exceeds(everywhere, b.limits.RepeatedBytes):
		return tooManyRepetitions(b.limits.RepeatedBytes)
	case exceeds(b.bytes+bytes, b.limits.SharedBytes):
		return fmt.Errorf("with it the VirtualServices of the route configuration have more than %d bytes", b.limits.SharedBytes)
	default:
		return nil
	}
}

// take adds a VirtualService, or returns why there is no room for it.
func (b *routeBudget) take(bytes, hosts, everywhere int) error {
	if err := b.check(bytes, everywhere); err != nil {
		return err
	}
	switch {
	case exceeds(b.hosts+hosts, b.limits.VirtualHosts):
		return fmt.Errorf("with it the VirtualServices of the route configuration have more than %d virtual hosts", b.limits.VirtualHosts)
	}
	b.bytes, b.hosts = b.bytes+bytes, b.hosts+hosts
	return nil
}

func tooManyRepetitions(limit int) error {
	return fmt.Errorf("its routes for all hosts, ports and servers have more than %d bytes", limit)
}

func tooManyRoutes(limit int) error {
	return fmt.Errorf("a virtual host of it has more than %d routes", limit)
}

// gatewayBudget is that of a router's route configuration, in which hosts with the same
// routes share a virtual host: a VirtualService for one of them alone makes another one,
// and repeats in it what the others have.
type gatewayBudget struct {
	routeBudget
	groups map[registry.Hostname]*hostGroup
}

// newGatewayBudget returns that of servers. The hosts of those that redirect have virtual
// hosts whatever their routes.
func newGatewayBudget(limits Limits, servers []*gatewayServer) *gatewayBudget {
	b := &gatewayBudget{routeBudget{limits: limits}, make(map[registry.Hostname]*hostGroup)}
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

// hostGroup are hosts with the same routes, of the VirtualServices that were taken.
type hostGroup struct {
	hosts  int
	routes int
	bytes  int // of the routes
}

// take adds what a server has of a VirtualService, or returns why there is no room for
// it. Times says how often a client has it.
func (b *gatewayBudget) take(part *serverRoutes, times int) error {
	if len(part.rules.routes) == 0 {
		return nil
	}
	hits := make(map[*hostGroup]int)
	size, count := part.rules.size, len(part.rules.routes)
	bytes, hosts := 0, 0
	for _, h := range part.names {
		group := b.groups[h]
		if hits[group]++; group == nil {
			bytes += 2*len(h) + 2*hostBytes // as a domain, and perhaps as the name
		}
	}
	most := 0
	for group, n := range hits {
		if bytes += size; group == nil {
			hosts++
		} else {
			most = max(most, group.routes)
			if n < group.hosts {
				hosts++
				bytes += group.bytes + hostBytes
			}
		}
	}
	if exceeds(most+count, b.limits.Routes) {
		return tooManyRoutes(b.limits.Routes)
	}
	if err := b.routeBudget.take(bytes, hosts, size*max(times, len(hits))); err != nil {
		return err
	}
	b.divide(part, hits)
	return nil
}

// divide gives hosts that have routes now that others of their groups do not have groups
// of their own.
func (b *gatewayBudget) divide(part *serverRoutes, hits map[*hostGroup]int) {
	next := make(map[*hostGroup]*hostGroup, len(hits))
	for group, n := range hits {
		divided := &hostGroup{hosts: n, routes: len(part.rules.routes), bytes: part.rules.size}
		if group != nil {
			group.hosts -= n
			divided.routes, divided.bytes = divided.routes+group.routes, divided.bytes+group.bytes
		}
		next[group] = divided
	}
	for _, h := range part.names {
		b.groups[h] = next[b.groups[h]]
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
		err := b.check(least, least*times)
		if err == nil {
			part.rules = st.gatewayRules(p, part.of, part.at())
			leftOut = append(leftOut, part.rules.leftOut...)
			err = b.take(part, times)
		}
		if part.over = err != nil; part.over {
			leftOut = append(leftOut, notServed(part.of, err))
		}
	}
	return leftOut
}

// notServed says that a VirtualService is not in a route configuration.
func notServed(v *virtualService, reason error) error {
	return leftOut(v.config, "spec.http",
		fmt.Errorf("its routes are left out, and requests to hosts that no other VirtualService is for are answered with 500: %w", reason))
}
