// SPDX-License-Identifier: Apache-2.0

package kindindex_test

import (
	"fmt"
	"testing"

	"github.com/pilotkit/pilotkit/internal/kindindex"
	"github.com/pilotkit/pilotkit/internal/test/testmain"
)

func TestMain(m *testing.M) { testmain.Verify(m) }

func name(i int, version string) kindindex.Name {
	return kindindex.Name{Group: "g", Version: version, Kind: fmt.Sprintf("K%d", i)}
}

// Find finds every version of every kind, and no other, and allocates nothing, however
// many kinds there are: fewer than the index has slots, more, and more only with aliases.
func TestFind(t *testing.T) {
	for _, n := range []int{0, 1, 60, 64, 65, 128, 129, 1000} {
		var x kindindex.Index
		for i := range n {
			x.Add(i, name(i, "v1"), "v1beta1")
		}
		for i := range n {
			for _, v := range []string{"v1", "v1beta1"} {
				at := name(i, v)
				if got, ok := x.Find(&at); !ok || got != i {
					t.Fatalf("n=%d: Find(%v) = %d, %t, want %d", n, at, got, ok, i)
				}
			}
		}
		for _, unknown := range []kindindex.Name{name(n, "v1"), name(0, "v2"), {Version: "v1", Kind: "K0"}, {}} {
			if got, ok := x.Find(&unknown); ok {
				t.Errorf("n=%d: Find(%v) = %d, want none", n, unknown, got)
			}
			if got := testing.AllocsPerRun(10, func() { x.Find(&unknown) }); got != 0 {
				t.Errorf("n=%d: %v allocations, want none", n, got)
			}
		}
	}
}

// The first position of a name counts, whether it is a kind's own or an alias.
func TestAddTwice(t *testing.T) {
	var x kindindex.Index
	x.Add(0, name(1, "v1"), "v1beta1")
	x.Add(1, name(1, "v1beta1"), "v1", "v2")
	for version, want := range map[string]int{"v1": 0, "v1beta1": 0, "v2": 1} {
		at := name(1, version)
		if got, ok := x.Find(&at); !ok || got != want {
			t.Errorf("Find(%v) = %d, %t, want %d", at, got, ok, want)
		}
	}
}
