// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"math"
	"testing"

	"github.com/pilotkit/pilotkit/internal/test/testmain"
)

// TestCheckKey: keys that are not comparable are found, wherever the value is that is not, and
// others cost no allocation, because each answer of a provider has one.
func TestCheckKey(t *testing.T) {
	type key struct {
		number float64
		any    any
	}
	for _, v := range []any{nil, "a", key{}, key{math.NaN(), "b"}, key{1, key{any: [1]any{"c"}}}} {
		if err := checkKey(v); err != nil {
			t.Errorf("%v: %v", v, err)
		}
	}
	testmain.ExpectPanic(t, "hash of unhashable type")
	for _, v := range []any{[]int{}, key{any: []int{}}, key{math.NaN(), []int{}}, key{1, key{any: [1]any{func() {}}}}} {
		if checkKey(v) == nil {
			t.Errorf("%v is taken for comparable", v)
		}
	}
	var v any = key{1, key{any: [1]any{"c"}}}
	if n := testing.AllocsPerRun(100, func() { _ = checkKey(v) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
