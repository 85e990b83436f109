// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"cmp"
	"slices"
	"time"

	"github.com/pilotkit/pilotkit/configstore"
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
