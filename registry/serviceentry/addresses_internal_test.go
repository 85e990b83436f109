// SPDX-License-Identifier: Apache-2.0

package serviceentry

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/pilotkit/pilotkit/registry"
)

func memberAt(addresses ...string) *member {
	return &member{endpoints: []registry.Endpoint{{Addresses: addresses}}}
}

// TestAddressTable compares the table with a map, through growth and many
// deletions, with members that have two addresses in unusual forms.
func TestAddressTable(t *testing.T) {
	for seed := range uint64(4) {
		rng := rand.New(rand.NewPCG(seed, 0))
		table, model := newAddressTable(), map[string]*member{}
		for step := range 20000 {
			// The range of addresses grows and shrinks.
			i := rng.IntN(1 + (step%10000)*(10000-step%10000)/50000)
			v4, v6 := fmt.Sprintf("10.0.%d.%d", i/256, i%256), fmt.Sprintf("2001:db8::%x", i+1)
			address := []string{v4, v6}[rng.IntN(2)]
			if rng.IntN(3) == 0 {
				table.remove(address)
				delete(model, address)
			} else {
				m := memberAt("::ffff:"+v4, "2001:0db8::"+fmt.Sprintf("%04x", i+1))
				table.set(address, m)
				model[address] = m
			}
			for _, probe := range []string{v4, v6, "10.1.1.1"} {
				if got := table.get(probe); got != model[probe] {
					t.Fatalf("seed %d, step %d: %s: %p, want %p", seed, step, probe, got, model[probe])
				}
			}
			if table.live != len(model) {
				t.Fatalf("seed %d, step %d: %d members, want %d", seed, step, table.live, len(model))
			}
		}
		for address := range model {
			table.remove(address)
		}
		if table.live != 0 || table.slots.Load() != nil {
			t.Errorf("seed %d: %d members are left", seed, table.live)
		}
	}
}

// TestAddressTableReaders reads without a lock while others are written: a member
// that stays is always found, and none under another's address.
func TestAddressTableReaders(t *testing.T) {
	table := newAddressTable()
	const kept = 100
	name := func(i int) string { return fmt.Sprintf("10.0.%d.%d", i/256, i%256) }
	for i := range kept {
		table.set(name(i), memberAt(name(i)))
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
				if m := table.get(name(i % kept)); m == nil || m.addresses()[0] != name(i%kept) {
					t.Errorf("%s is not found while others are written", name(i%kept))
					return
				}
			}
		})
	}
	rng := rand.New(rand.NewPCG(1, 1))
	for range 20000 {
		i := kept + rng.IntN(kept*9)
		switch rng.IntN(3) {
		case 0:
			table.remove(name(i))
		case 1:
			table.set(name(i), memberAt(name(i)))
		default:
			table.set(name(i%kept), memberAt(name(i%kept)))
		}
	}
	close(done)
	readers.Wait()
}
