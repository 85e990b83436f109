// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"fmt"

	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/objects"
)

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

// routeCost is the contribution of a VirtualService to a route configuration.
type routeCost struct {
	of           *objects.VirtualService
	bytes, hosts int
}

// allot returns for each VirtualService an error if it exceeds limits, or nil.
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
			if claims[i] = claimOf(c.of.Config, 0); out[i] == nil {
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
