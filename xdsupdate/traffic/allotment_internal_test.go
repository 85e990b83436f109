// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// TestShares: claims within the share of their namespace are admitted, whatever others claim; no more is admitted than the
// limit; and a claim that is left out does not fit beside those that are admitted before it.
func TestShares(t *testing.T) {
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 39))
		namespaces, limit := 1+r.IntN(5), 1+r.IntN(200)
		claims, sums := make([]claim, r.IntN(30)), make(map[string]int)
		for i := range claims {
			claims[i] = claim{created: time.Unix(int64(i), 0), namespace: fmt.Sprint("n", r.IntN(namespaces)), cost: r.IntN(30)}
		}
		over, used, all := allot(limit, claims), 0, 0
		for i, c := range claims {
			sums[c.namespace] += c.cost
			all += c.cost
			left := over != nil && over[i]
			if left && sums[c.namespace] <= limit/namespaces {
				t.Fatalf("seed %d: claim %d of %s is left out within its share: %v of %d", seed, i, c.namespace, claims, limit)
			}
			if !left {
				used += c.cost
			}
		}
		if used > limit || all <= limit && over != nil {
			t.Fatalf("seed %d: %d of %d are used, of %d", seed, used, limit, all)
		}
		for i, c := range claims {
			if over != nil && over[i] && used+c.cost <= limit {
				t.Fatalf("seed %d: claim %d is left out, and fits", seed, i)
			}
		}
		if allot(0, claims) != nil {
			t.Fatal("0 is no limit")
		}
	}
}
