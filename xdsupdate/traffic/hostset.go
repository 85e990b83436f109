// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"iter"
	"slices"
	"strings"

	"github.com/pilotkit/pilotkit/internal/limit"
	"github.com/pilotkit/pilotkit/registry"
)

// hostSet indexes a list of hosts, so that the cost of a lookup depends on the number of matches.
// Without it, comparing two objects with 10,000 hosts each would take 100,000,000 steps. It is
// immutable.
type hostSet struct {
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

// fewHosts is the maximum length of a list without an index, because scanning it is cheaper.
const fewHosts limit.Size = 16

func newHostSet(names []registry.Hostname) *hostSet {
	s := &hostSet{names: names}
	if len(names) <= fewHosts.Get() {
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

// matching returns the positions of the hosts that match a host (Hostname.Matches), in ascending
// order.
func (s *hostSet) matching(host registry.Hostname) []int {
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
	for wildcard := range wildcardsOf(host) {
		if wildcard != host {
			out = append(out, s.positions[wildcard]...)
		}
	}
	for i := range s.below(host) {
		if s.names[i] != host {
			out = append(out, i)
		}
	}
	slices.Sort(out)
	return out
}

// below yields the positions of the hosts that a wildcard covers, in unspecified order. It yields
// none for a host that is not a wildcard.
func (s *hostSet) below(wildcard registry.Hostname) iter.Seq[int] {
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

// covers reports whether a wildcard covers some host of the list.
func (s *hostSet) covers(wildcard registry.Hostname) bool {
	for range s.below(wildcard) {
		return true
	}
	return false
}

// first returns the first index in reversed whose name can have the reversed suffix.
func (s *hostSet) first(suffix string) int {
	i, _ := slices.BinarySearchFunc(s.reversed, suffix, func(r reversedHost, suffix string) int { return strings.Compare(r.text, suffix) })
	return i
}
