// SPDX-License-Identifier: Apache-2.0

package ptrtable_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/pilotkit/pilotkit/internal/ptrtable"
	"github.com/pilotkit/pilotkit/internal/test/histories"
)

// object has several keys.
type object struct{ keys []string }

func newTable() *ptrtable.Table[string, object] {
	return ptrtable.New(
		func(o *object, i uint16, k string) bool { return int(i) < len(o.keys) && o.keys[i] == k },
		func(o *object, i uint16) string { return o.keys[i] },
	)
}

type noted struct {
	object *object
	note   uint16
}

// TestTable compares the table with a map, through growth and many deletions, with
// objects that have two keys, one of them several times.
func TestTable(t *testing.T) {
	t.Parallel()
	for _, seed := range histories.Seeds(t, 4) {
		rng := rand.New(rand.NewPCG(seed, 0))
		table, model := newTable(), map[string]noted{}
		for step := range 20000 {
			// The range of keys grows and shrinks.
			i := rng.IntN(1 + (step%10000)*(10000-step%10000)/50000)
			keys := []string{fmt.Sprint("a", i), fmt.Sprint("b", i)}
			note := uint16(rng.IntN(2))
			k := keys[note]
			if rng.IntN(3) == 0 {
				table.Delete(k)
				delete(model, k)
			} else {
				o := noted{&object{keys}, note}
				if rng.IntN(2) == 0 {
					o = noted{&object{[]string{keys[1-note], k, k, k}}, 1 + uint16(rng.IntN(3))}
				}
				table.Set(k, o.object, o.note)
				model[k] = o
			}
			for _, probe := range append(keys, "absent") {
				want := model[probe]
				if got, note := table.Get(probe); got != want.object || note != want.note {
					t.Fatalf("seed %d, step %d: %s: %v, %d, want %v", seed, step, probe, got, note, want)
				}
			}
			if table.Len() != len(model) {
				t.Fatalf("seed %d, step %d: %d keys, want %d", seed, step, table.Len(), len(model))
			}
		}
		compareEach(t, table, model)
		for k := range model {
			table.Delete(k)
		}
		table.Each(func(o *object, _ uint16) bool {
			t.Errorf("seed %d: %v is left", seed, o.keys)
			return true
		})
	}
}

func compareEach(t *testing.T, table *ptrtable.Table[string, object], model map[string]noted) {
	t.Helper()
	left := map[noted]int{}
	for _, o := range model {
		left[o]++
	}
	table.Each(func(o *object, note uint16) bool {
		left[noted{o, note}]--
		return true
	})
	for o, n := range left {
		if n != 0 {
			t.Errorf("Each has %v %d times too little", o.object.keys, n)
		}
	}
	calls := 0
	table.Each(func(*object, uint16) bool {
		calls++
		return false
	})
	if calls != 1 {
		t.Errorf("Each calls a yield that returns false %d times", calls)
	}
}

// TestReaders reads while the table is written: objects that are never removed are
// always found, and none under another's key; keys by another note may be missed.
func TestReaders(t *testing.T) {
	t.Parallel()
	table := newTable()
	const kept = 100
	set := func(i int) { table.Set(fmt.Sprint(i), &object{[]string{fmt.Sprint(i)}}, 0) }
	for i := range kept {
		set(i)
	}
	done := make(chan struct{})
	var readers sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			for i := 0; ; i = (i + 1) % kept {
				select {
				case <-done:
					return
				default:
				}
				if o, _ := table.Get(fmt.Sprint(i)); o == nil || o.keys[0] != fmt.Sprint(i) {
					t.Errorf("Get(%d) = %v while others are written", i, o)
					return
				}
				other := fmt.Sprint(kept + 5*i)
				if o, _ := table.Get(other); o != nil && !slices.Contains(o.keys, other) {
					t.Errorf("Get(%s) = %v", other, o)
					return
				}
			}
		})
	}
	rng := rand.New(rand.NewPCG(1, 1))
	for range 20000 {
		set(rng.IntN(kept))
		switch i := kept + rng.IntN(kept*9); rng.IntN(3) {
		case 0:
			set(i)
		case 1:
			table.Set(fmt.Sprint(i), &object{[]string{"", fmt.Sprint(i)}}, 1)
		default:
			table.Delete(fmt.Sprint(i))
		}
	}
	close(done)
	readers.Wait()
}
