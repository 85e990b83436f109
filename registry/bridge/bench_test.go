// SPDX-License-Identifier: Apache-2.0

package bridge_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/pilotkit/pilotkit/registry/bridge"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// prepared is a catalogue that returns a prepared listing.
type prepared struct{ listing bridge.Listing }

// List implements bridge.Catalogue.
func (p *prepared) List(context.Context) (bridge.Listing, error) { return p.listing, nil }

// BenchmarkSync syncs newly allocated lists of n services with three endpoints each. In each list
// the given number of services has changed.
func BenchmarkSync(b *testing.B) {
	for _, n := range []int{1000, 10_000} {
		for _, changed := range []int{0, 1, n} {
			b.Run(fmt.Sprintf("n=%d/changed=%d", n, changed), func(b *testing.B) {
				benchmarkSync(b, n, changed)
			})
		}
	}
}

func benchmarkSync(b *testing.B, n, changed int) {
	b.Helper()
	var lists [2]bridge.Listing
	for l := range lists {
		for i := range n {
			address := func(k int) string { return fmt.Sprintf("10.%d.%d.%d", i>>8, i&255, k) }
			third := 3
			if i < changed {
				third += l
			}
			r := record(fmt.Sprintf("service-%d.example.com", i), address(1), address(2), address(third))
			lists[l].Records = append(lists[l].Records, r)
		}
	}
	catalogue := &prepared{lists[0]}
	reg := bridge.New(catalogue, bridge.Options{Updater: xdsupdate.NewPusher(func(*xdsupdate.PushRequest) {})})
	if err := reg.Sync(b.Context()); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		catalogue.listing = lists[(i+1)%2]
		if err := reg.Sync(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}
