// SPDX-License-Identifier: Apache-2.0

package xdsbuild

import (
	"iter"
	"maps"
	"slices"
	"strings"

	networking "istio.io/api/networking/v1alpha3"
)

// distribute applies the first rule that covers the proxy's locality to the weights of localities.
// Each target divides its weight among the groups that it covers, in proportion to their weights,
// rounded up. Groups that no target covers are dropped. If no rule covers the proxy, nothing
// changes.
func distribute(
	groups []*group, rules []*networking.LocalityLoadBalancerSetting_Distribute, own localityKey,
) []*group {
	for _, rule := range rules {
		if !covers(rule.GetFrom(), own) {
			continue
		}
		var out []*group
		covering := make(map[area][]*group)
		for _, g := range groups {
			for a := range areasOf(g.locality) {
				covering[a] = append(covering[a], g)
			}
		}
		for _, to := range slices.Sorted(maps.Keys(rule.GetTo())) {
			share := uint64(rule.GetTo()[to])
			var covered []*group
			total := uint64(0)
			for _, g := range covering[parseArea(to)] {
				// The validation rejects overlapping targets.
				if g.weight == 0 && share > 0 {
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

// sum returns the sum of the weights of the entries.
func (g *group) sum() uint64 {
	total := uint64(0)
	for _, m := range g.entries {
		total += m.weight
	}
	return total
}

// area is the set of localities that a pattern covers: the localities with the same first parts.
type area struct {
	localityKey
	parts int
}

// parseArea parses a pattern "region/zone/subzone". An asterisk or a missing part matches every
// locality, and so do all parts after it.
func parseArea(pattern string) area {
	var a area
	for i, part := range strings.SplitN(pattern, "/", 3) {
		if part == "*" || part == "" {
			break
		}
		switch a.parts = i + 1; i {
		case 0:
			a.region = part
		case 1:
			a.zone = part
		default:
			a.subZone = part
		}
	}
	return a
}

// areasOf yields all areas that contain a locality.
func areasOf(l localityKey) iter.Seq[area] {
	return func(yield func(area) bool) {
		_ = yield(area{}) && yield(area{localityKey{region: l.region}, 1}) &&
			yield(area{localityKey{region: l.region, zone: l.zone}, 2}) && yield(area{l, 3})
	}
}

// covers reports whether a pattern covers a locality.
func covers(pattern string, l localityKey) bool {
	for a := range areasOf(l) {
		if a == parseArea(pattern) {
			return true
		}
	}
	return false
}
