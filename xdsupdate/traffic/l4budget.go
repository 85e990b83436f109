// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
)

// A listener has a match for each name of each chain and each range of destinations, as
// many as both numbers multiplied. What the names of one namespace and the ranges of
// another make together counts for the one that has more of its own.

// l4Part is what the chains of an object bring to a listener.
type l4Part struct {
	chainOwner
	// matches are those of the chains without the ranges of destinations.
	matches int
	// ranges are those that no older object has.
	ranges []netip.Prefix
}

// l4Parts returns what the objects of chains bring, the oldest first.
func l4Parts(chains []gatewayChain) []*l4Part {
	var out []*l4Part
	of := make(map[chainOwner]*l4Part)
	known := newRangeSet([]netip.Prefix{anywhere})
	for _, c := range byAge(chains) {
		part := of[c.owner()]
		if part == nil {
			part = &l4Part{chainOwner: c.owner()}
			of[part.chainOwner] = part
			out = append(out, part)
		}
		part.matches += max(1, len(c.GetFilterChainMatch().GetServerNames())) * max(1, len(c.sources))
		for _, r := range c.destinations {
			if _, again := known[r]; !again {
				known[r] = struct{}{}
				part.ranges = append(part.ranges, r)
			}
		}
	}
	return out
}

// l4Claims returns the claims of parts on the matches of a listener.
func l4Claims(parts []*l4Part) []claim {
	matches, ranges := make(map[string]int), make(map[string]int)
	for _, part := range parts {
		matches[part.config.Namespace] += part.matches
		ranges[part.config.Namespace] += len(part.ranges)
	}
	out := make([]claim, len(parts))
	for i, part := range parts {
		own := part.config.Namespace
		forMatch, forRange := 1, 0
		for namespace := range matches {
			if namespace == own || ranges[own] > matches[namespace] {
				forRange += matches[namespace]
			}
			if namespace != own && ranges[namespace] <= matches[own] {
				forMatch += ranges[namespace]
			}
		}
		out[i] = claim{own, part.matches*forMatch + len(part.ranges)*forRange}
	}
	return out
}

// admitDestinations returns the ranges by which destinations are told apart, and which
// objects are left out because there would be too many matches, and why.
func (st *state) admitDestinations(chains []gatewayChain) ([]netip.Prefix, map[chainOwner]struct{}, []error) {
	parts, limit := l4Parts(chains), st.settings.limits.FilterChains
	over := allot(limit, l4Claims(parts))
	out, left := []netip.Prefix{anywhere}, make(map[chainOwner]struct{})
	var errs []error
	for i, part := range parts {
		if over == nil || !over[i] {
			slices.SortFunc(part.ranges, func(a, b netip.Prefix) int {
				return cmp.Or(a.Addr().Compare(b.Addr()), cmp.Compare(a.Bits(), b.Bits()))
			})
			out = append(out, part.ranges...)
			continue
		}
		left[part.chainOwner] = struct{}{}
		err := fmt.Errorf("with its destinationSubnets the listener would have more than %d matches", limit)
		if len(part.ranges) == 0 {
			err = fmt.Errorf("with it the listener would have more than %d matches", limit)
		}
		errs = append(errs, leftOut(part.config, part.field, closedConnections(err)))
	}
	return out, left, errs
}
