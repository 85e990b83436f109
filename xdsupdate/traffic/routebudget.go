// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"fmt"
)

// A route configuration is shared by the VirtualServices of many namespaces, and has
// limits (SharedBytes, VirtualHosts, Routes), which are allotted to the namespaces. What is
// sent of a VirtualService is the same in all replicas.

// routeBudget bounds what is built for a route configuration before it is known what
// there is room for: of no namespace more than all of them may have.
type routeBudget struct {
	limits Limits
	built  map[string]int // bytes by namespace
}

// hostBytes is more than a virtual host has but for its name, domains and routes.
const hostBytes = 32

// leastBytes is what each match of a VirtualService counts at least: before its routes are
// built, so that those that there is no room for cost nothing. A usual one has more.
const leastBytes = 256

// check returns why a VirtualService with these bytes here, and these wherever a client
// has it, is left out whatever those of other namespaces have.
func (b *routeBudget) check(v *virtualService, bytes, everywhere int) error {
	switch {
	case exceeds(everywhere, b.limits.RepeatedBytes):
		return tooManyRepetitions(b.limits.RepeatedBytes)
	case exceeds(b.built[v.namespace]+bytes, b.limits.SharedBytes):
		return tooManyBytes("route configuration", b.limits.SharedBytes)
	default:
		return nil
	}
}

// take is check for a VirtualService that is built. It counts one that is not left out.
func (b *routeBudget) take(v *virtualService, bytes, everywhere int) error {
	err := b.check(v, bytes, everywhere)
	if err == nil {
		b.built[v.namespace] += bytes
	}
	return err
}

// routeCost is what a VirtualService adds to a route configuration.
type routeCost struct {
	of           *virtualService
	bytes, hosts int
}

// allot returns why there is no room for VirtualServices, which come from the oldest to
// the newest; nil for those that there is room for.
func (b *routeBudget) allot(costs []routeCost) []error {
	out := make([]error, len(costs))
	for _, limited := range []struct {
		limit  int
		cost   func(routeCost) int
		reason func(limit int) error
	}{
		{b.limits.SharedBytes, func(c routeCost) int { return c.bytes }, func(limit int) error { return tooManyBytes("route configuration", limit) }},
		{b.limits.VirtualHosts, func(c routeCost) int { return c.hosts }, func(limit int) error {
			return fmt.Errorf("the VirtualServices of the route configuration would have more than %d virtual hosts%s", limit, beyondShare)
		}},
	} {
		claims := make([]claim, len(costs))
		for i, c := range costs {
			if claims[i].namespace = c.of.namespace; out[i] == nil {
				claims[i].cost = limited.cost(c)
			}
		}
		for i, over := range allot(limited.limit, claims) {
			if over {
				out[i] = limited.reason(limited.limit)
			}
		}
	}
	return out
}

// beyondShare ends the reasons why there is no room for an object.
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

// notServed says that a VirtualService is not in a route configuration.
func notServed(v *virtualService, reason error) error {
	return leftOut(v.config, "spec.http",
		fmt.Errorf("its routes are left out, and requests to hosts that no other VirtualService is for are answered with 500: %w", reason))
}
