// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"cmp"
	"slices"
)

// Objects of many namespaces share a limit: of a route configuration, of a listener, of
// the clusters of a wildcard. Where they come to more, the namespace that has the most
// loses first, and of its objects the newest.
//
// Claims are admitted by how much the namespace has with each of them and its older
// ones, the least first; of equal ones the older. So a namespace whose claims come to no
// more than the limit divided by the number of namespaces has all of them, whatever
// others write: that is its share, and what serves within it stays. What was sent
// before is no input, because replicas, and a process before and after a restart, must
// agree. So what a namespace has beyond its share lasts until others need theirs.

// claim is what an object of a namespace needs of a limit.
type claim struct {
	namespace string
	cost      int
}

// byShares returns the positions of claims, which come from the oldest to the newest, in the order in which they
// are admitted.
func byShares(claims []claim) []int {
	order, with, sums := make([]int, len(claims)), make([]int, len(claims)), make(map[string]int)
	for i, c := range claims {
		sums[c.namespace] += c.cost
		order[i], with[i] = i, sums[c.namespace]
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(with[i], with[j]) })
	return order
}

// allot returns which of the claims, which come from the oldest to the newest, there is no room for, each if
// it does not fit with those that are admitted before it; nil if there is room for all.
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
