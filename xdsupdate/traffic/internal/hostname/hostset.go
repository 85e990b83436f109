// SPDX-License-Identifier: Apache-2.0

package hostname

import (
	"iter"
	"slices"
	"strings"

	"github.com/pilotkit/pilotkit/internal/limit"
	"github.com/pilotkit/pilotkit/registry"
)

// Set indexes a list of hosts, so that the cost of a lookup depends on the number of matches.
// Without it, comparing two objects with 10,000 hosts each would take 100,000,000 steps. It is
// immutable.
type Set struct {
	names []registry.Hostname
	// positions maps hosts to their positions in names. It is nil for a short list, which is
	// scanned.
	positions map[registry.Hostname][]int
	// reversed contains all positions, sorted by the reversed names, so that the hosts below a
	// wildcard are adjacent.
	reversed []reversedHost
}

type reversedHost struct {
	text     string
	position int
}

// FewHosts is the maximum length of a list without an index, because scanning it is cheaper.
const FewHosts limit.Size = 16

// NewSet returns the set of a list of hosts.
func NewSet(names []registry.Hostname) *Set {
	s := &Set{names: names}
	if len(names) <= FewHosts.Get() {
		return s
	}
	s.positions = make(map[registry.Hostname][]int, len(names))
	s.reversed = make([]reversedHost, 0, len(names))
	for i, n := range names {
		s.positions[n] = append(s.positions[n], i)
		s.reversed = append(s.reversed, reversedHost{backwards(string(n)), i})
	}
	slices.SortFunc(s.reversed, func(a, b reversedHost) int { return strings.Compare(a.text, b.text) })
	return s
}

func backwards(s string) string {
	b := []byte(s)
	slices.Reverse(b)
	return string(b)
}

// Matching returns the positions of the hosts that match a host (Hostname.Matches), in ascending
// order.
func (s *Set) Matching(host registry.Hostname) []int {
	var out []int
	if s.positions == nil {
		for i, n := range s.names {
			if host.Matches(n) {
				out = append(out, i)
			}
		}
		return out
	}
	out = append(out, s.positions[host]...)
	for wildcard := range Wildcards(host) {
		if wildcard != host {
			out = append(out, s.positions[wildcard]...)
		}
	}
	for i := range s.Below(host) {
		if s.names[i] != host {
			out = append(out, i)
		}
	}
	slices.Sort(out)
	return out
}

// Below yields the positions of the hosts that a wildcard covers, in unspecified order. It yields
// none for a host that is not a wildcard.
func (s *Set) Below(wildcard registry.Hostname) iter.Seq[int] {
	return func(yield func(int) bool) {
		if !wildcard.IsWildcard() {
			return
		}
		if s.positions == nil {
			for i, n := range s.names {
				if n.SubsetOf(wildcard) && !yield(i) {
					return
				}
			}
			return
		}
		suffix := backwards(string(wildcard[1:]))
		for _, r := range s.reversed[s.first(suffix):] {
			if !strings.HasPrefix(r.text, suffix) || s.names[r.position].SubsetOf(wildcard) && !yield(r.position) {
				return
			}
		}
	}
}

// Covers reports whether a wildcard covers a host of the set, which may be nil.
func (s *Set) Covers(wildcard registry.Hostname) bool {
	if s != nil {
		for range s.Below(wildcard) {
			return true
		}
	}
	return false
}

// Has reports whether a host of the set, which may be nil, covers a host.
func (s *Set) Has(host registry.Hostname) bool {
	switch {
	case s == nil:
		return false
	case s.positions == nil:
		return slices.ContainsFunc(s.names, host.SubsetOf)
	default:
		_, found := MostSpecific(s.positions, host)
		return found
	}
}

// first returns the first index in reversed whose name can have the reversed suffix.
func (s *Set) first(suffix string) int {
	i, _ := slices.BinarySearchFunc(s.reversed, suffix, func(r reversedHost, suffix string) int { return strings.Compare(r.text, suffix) })
	return i
}
