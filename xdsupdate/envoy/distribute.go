// SPDX-License-Identifier: Apache-2.0

package envoy

import (
	"maps"
	"slices"
	"strings"

	networking "istio.io/api/networking/v1alpha3"
)

// distribute gives localities the weights of the first rule that covers the proxy's
// locality: each target shares its weight among the groups that it covers, by
// their own weights, rounded up. What no target covers is left out. If no rule covers
// the proxy everything stays as it is.
func distribute(
	groups []*group, rules []*networking.LocalityLoadBalancerSetting_Distribute, own localityKey,
) []*group {
	for _, rule := range rules {
		if !covers(rule.GetFrom(), own) {
			continue
		}
		var out []*group
		for _, to := range slices.Sorted(maps.Keys(rule.GetTo())) {
			share := uint64(rule.GetTo()[to])
			var covered []*group
			total := uint64(0)
			for _, g := range groups {
				// The validation refuses targets that cover one another.
				if g.weight == 0 && share > 0 && covers(to, g.locality) {
					covered = append(covered, g)
					total += g.sum()
				}
			}
			for _, g := range covered {
				g.weight = (share*g.sum() + total - 1) / total
			}
			out = append(out, covered...)
		}
		slices.SortFunc(out, func(a, b *group) int { return a.locality.compare(b.locality) })
		return out
	}
	return groups
}

// sum returns the sum of the weights of the members.
func (g *group) sum() uint64 {
	total := uint64(0)
	for _, m := range g.members {
		total += m.weight
	}
	return total
}

// covers reports whether a pattern, "region/zone/subzone" with an asterisk for what
// does not matter, covers a locality. Parts that are missing do not matter.
func covers(pattern string, l localityKey) bool {
	parts := strings.SplitN(pattern, "/", 3)
	for i, own := range []string{l.region, l.zone, l.subZone} {
		switch {
		case i >= len(parts) || parts[i] == "*" || parts[i] == "":
			return true
		case parts[i] != own:
			return false
		}
	}
	return true
}
