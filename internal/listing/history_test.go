// SPDX-License-Identifier: Apache-2.0

package listing

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/internal/test/testmain"
)

// After each step of a random history the invariants hold, and lists match the objects, including
// the lists of earlier captures.
func TestRandomHistories(t *testing.T) {
	bothWays(t, func(t *testing.T, s *store) {
		t.Helper()
		random := rand.New(rand.NewPCG(7, 11)) //nolint:gosec // the same in each run
		namespaces := []string{"a", "b", "c", configstore.NamespaceAll}
		type moment struct {
			capture Capture
			objects contents
		}
		var captured []moment
		for step := range 1500 {
			switch n := random.IntN(100); {
			case n < 3: // a burst: pending is shortened, or the list is lost
				s.fill(namespaces[random.IntN(2)], random.IntN(300))
			case n < 5:
				for range random.IntN(300) {
					s.set(Key{"a", "o" + strconv.Itoa(random.IntN(3))}, random.IntN(2) == 0)
				}
			case n < 6:
				for k := range maps.Clone(s.objects) {
					s.set(k, false)
				}
			case n < 20:
				s.expect(t, namespaces[random.IntN(4)])
			case n < 23:
				s.mu.Lock()
				captured = append(captured, moment{s.lists.Capture(), maps.Clone(s.objects)})
				s.mu.Unlock()
			default:
				s.set(Key{namespaces[random.IntN(3)], "o" + strconv.Itoa(random.IntN(20))}, random.IntN(3) > 0)
			}
			if step%25 == 0 || step < 100 {
				s.validate(t)
			}
		}
		for i, m := range captured {
			if got, want := m.capture.List(m.objects), wanted(m.objects, ""); !slices.Equal(got, want) {
				t.Errorf("capture %d: %s, want %s", i, text(got), text(want))
			}
		}
	})
}

// TestLoweredSizes runs the histories with lists that lose their pending keys at once.
func TestLoweredSizes(t *testing.T) { testmain.Lowered(t, "^TestRandomHistories$") }
