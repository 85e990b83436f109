// SPDX-License-Identifier: Apache-2.0

package aggregate

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/internal/listing"
)

func tableObject(i int) *configstore.Config {
	return &configstore.Config{Meta: configstore.Meta{Namespace: fmt.Sprint("ns-", i%7), Name: fmt.Sprint("n-", i/7)}}
}

// TestTable compares the table with a map, through growth and many deletions.
func TestTable(t *testing.T) {
	type owned struct {
		config *configstore.Config
		owner  int
	}
	for seed := range uint64(4) {
		rng := rand.New(rand.NewPCG(seed, 0))
		tab, model := newTable(), map[listing.Key]owned{}
		for step := range 20000 {
			// The range of keys grows and shrinks.
			limit := 1 + (step%10000)*(10000-step%10000)/50000
			c := tableObject(rng.IntN(limit))
			if rng.IntN(3) == 0 {
				tab.remove(listing.KeyOf(c))
				delete(model, listing.KeyOf(c))
			} else {
				owner := rng.IntN(300)
				tab.set(c, owner)
				model[listing.KeyOf(c)] = owned{c, owner}
			}
			probe := listing.KeyOf(tableObject(rng.IntN(limit)))
			if got, owner := tab.owned(probe); got != model[probe].config || got != nil && owner != model[probe].owner {
				t.Fatalf("seed %d, step %d: %v = %v of %d, want %v", seed, step, probe, got, owner, model[probe])
			}
			if tab.live != len(model) {
				t.Fatalf("seed %d, step %d: %d objects, want %d", seed, step, tab.live, len(model))
			}
		}
		seen := 0
		tab.each(func(c *configstore.Config, owner int) bool {
			seen++
			if want := model[listing.KeyOf(c)]; want.config != c || want.owner != owner {
				t.Errorf("seed %d: each has %v of %d, want %v", seed, listing.KeyOf(c), owner, want)
			}

			return true
		})
		if seen != len(model) {
			t.Errorf("seed %d: each has %d objects, want %d", seed, seen, len(model))
		}
	}
}

// TestTableReaders reads without a lock while the table is written: objects that
// are never removed are always found.
func TestTableReaders(t *testing.T) {
	tab := newTable()
	const kept = 100
	for i := range kept {
		tab.set(tableObject(i), 0)
	}
	done := make(chan struct{})
	var readers sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-done:
					return
				default:
				}
				k := listing.KeyOf(tableObject(i % kept))
				if c := tab.get(k); c == nil || listing.KeyOf(c) != k {
					t.Errorf("get(%v) = %v while others are written", k, c)
					return
				}
			}
		})
	}
	rng := rand.New(rand.NewPCG(1, 1))
	for range 20000 {
		tab.set(tableObject(rng.IntN(kept)), 0)
		if i := kept + rng.IntN(kept*9); rng.IntN(2) == 0 {
			tab.set(tableObject(i), 0)
		} else {
			tab.remove(listing.KeyOf(tableObject(i)))
		}
	}
	close(done)
	readers.Wait()
}
