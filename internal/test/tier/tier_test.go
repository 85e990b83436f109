// SPDX-License-Identifier: Apache-2.0

package tier_test

import (
	"testing"

	"github.com/pilotkit/pilotkit/internal/test/tier"
)

func TestShare(t *testing.T) {
	if testing.Short() {
		t.Setenv("PILOTKIT_TESTS", "")
		if got := tier.Share(40); got != 1 {
			t.Errorf("a short share of 40 is %d, want 1", got)
		}
		return
	}
	for variable, want := range map[string]int{"": 4, "full": 40, "another": 4} {
		t.Setenv("PILOTKIT_TESTS", variable)
		if got := tier.Share(40); got != want {
			t.Errorf("%q: the share of 40 is %d, want %d", variable, got, want)
		}
		if got := tier.Share(1); got != 1 {
			t.Errorf("%q: the share of 1 is %d, want 1", variable, got)
		}
	}
}

func TestOnlyFull(t *testing.T) {
	t.Setenv("PILOTKIT_TESTS", "full")
	reached := t.Run("full", func(t *testing.T) { tier.OnlyFull(t, "this test") })
	if !reached {
		t.Error("a test of the full tier failed")
	}
	t.Setenv("PILOTKIT_TESTS", "")
	t.Run("default", func(t *testing.T) {
		defer func() {
			if !t.Skipped() {
				t.Error("a test of the full tier runs by default")
			}
		}()
		tier.OnlyFull(t, "the other half of this test")
	})
}
