// SPDX-License-Identifier: Apache-2.0

package histories_test

import (
	"math"
	"slices"
	"testing"

	"github.com/pilotkit/pilotkit/internal/test/histories"
)

func TestSeeds(t *testing.T) {
	once := []uint64{77, math.MaxUint64} // of testdata/seeds
	for _, tt := range []struct {
		name, count, seed string
		want              []uint64
	}{
		{name: "a number of histories", count: "3", want: append(slices.Clone(once), 0, 1, 2)},
		{name: "one seed", count: "3", seed: "12", want: []uint64{12}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv("PILOTKIT_HISTORIES", tt.count)
			t.Setenv("PILOTKIT_SEED", tt.seed)
			if got := histories.Seeds(t, 100); !slices.Equal(got, tt.want) {
				t.Errorf("the seeds are %d, want %d", got, tt.want)
			}
		})
	}
	t.Run("full", func(t *testing.T) {
		if testing.Short() {
			t.Skip("-short has a share of its own")
		}
		t.Setenv("PILOTKIT_TESTS", "full")
		if got := histories.Seeds(t, 4); !slices.Equal(got, append(slices.Clone(once), 0, 1, 2, 3)) {
			t.Errorf("the seeds of the full tier are %d", got)
		}
	})
}
