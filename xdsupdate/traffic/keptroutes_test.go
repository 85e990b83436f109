// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"testing"

	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/objects"
)

// TestKeptPlacesAreBounded: of a VirtualService on ever more routers, the routes of the
// last ones are kept.
func TestKeptPlacesAreBounded(t *testing.T) {
	var kept keptRoutes
	rules := &builtRules{of: &objects.VirtualService{}}
	for port := range uint32(3 * maxKeptPlaces.Get()) {
		at := keptPlace{place: place{port: port}}
		kept = kept.with(at, rules)
		if list, _ := kept.of.Get(rules.of); len(list) > maxKeptPlaces.Get() {
			t.Fatalf("routes of %d places are kept, want %d at most", len(list), maxKeptPlaces.Get())
		}
		if kept.get(rules.of, at) != rules {
			t.Fatal("the last routes are not kept")
		}
	}
}
