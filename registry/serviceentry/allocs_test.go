// SPDX-License-Identifier: Apache-2.0

package serviceentry_test

import (
	"testing"

	"github.com/pilotkit/pilotkit/configstore"
)

// maxEntryAllocs and maxEndpointsAllocs bound what one change allocates, from the
// write to the end of the updater's calls, the store's three included, and the
// attributes that only the changed one has.
const (
	maxEntryAllocs     = 23
	maxEndpointsAllocs = 40
)

func TestAllocations(t *testing.T) {
	p := newPlant(true)
	write := func(configs []configstore.Config) {
		for _, c := range configs {
			if !p.create(c) {
				t.Fatalf("%s cannot be created", c.Name)
			}
		}
	}
	write(selectors(100))
	w, changed := benchWorkloadEntry(0, 0, "app-1"), benchWorkloadEntry(0, 1, "app-1")
	write([]configstore.Config{w})
	i := 0
	got := testing.AllocsPerRun(200, func() {
		p.update(either(i, changed, w))
		i++
	})
	if got > maxEntryAllocs {
		t.Errorf("a changed WorkloadEntry costs %.0f allocations, more than %d", got, maxEntryAllocs)
	}

	const entries = 300
	write(standardEntries(entries))
	c := newChanges(entries, func(i int) configstore.Config { return standardEntry(i, 1) })
	i = 0
	got = testing.AllocsPerRun(3*entries, func() {
		p.update(c.at(i))
		i++
	})
	if got > maxEndpointsAllocs {
		t.Errorf("five endpoints that are replaced cost %.0f allocations, more than %d", got, maxEndpointsAllocs)
	}
}
