// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
)

// A listener has a match for each server name of a chain and each range of destinations, so the
// number of matches is the product of both. Matches from the names of one namespace and the ranges
// of another are attributed to the namespace with the larger factor.

// l4Part is the contribution of one object to the matches of a listener.
type l4Part struct {
	chainOwner
	// matches is the number of matches of its chains without ranges of destinations.
	matches int
	// ranges are the ranges that no older object has.
	ranges []netip.Prefix
}

// l4Parts returns the parts of the chains' owners, the oldest first.
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

// l4Claims returns the claims of parts on the limit of a listener's matches.
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
		out[i] = claimOf(part.config, part.matches*forMatch+len(part.ranges)*forRange)
	}
	return out
}

// admitDestinations returns the ranges that distinguish destinations, and the objects that are left
// out because the listener would exceed the limit of matches, with errors.
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
