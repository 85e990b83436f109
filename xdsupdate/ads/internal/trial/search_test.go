// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/pilotkit/pilotkit/internal/test/histories"
	"github.com/pilotkit/pilotkit/internal/test/testmain"
)

// TestLoweredSizes: a search finds the same with fewer parts that are left out alone.
func TestLoweredSizes(t *testing.T) { testmain.Lowered(t, "^(TestSearch|TestHopelessSearch)$") }

// TestSearch: exactly the rejected parts are found, with few trials, also while parts change, and if they have to be
// left out deeply.
func TestSearch(t *testing.T) {
	for _, seed := range histories.Seeds(t, 3000) {
		random := rand.New(rand.NewPCG(seed, 1))
		var parts, bad, likely []int
		for i := range 1 + random.IntN(200) {
			parts = append(parts, i)
		}
		isBad := func(part int) bool { return slices.Contains(bad, part) }
		for range 1 + random.IntN(3) {
			if part := parts[random.IntN(len(parts))]; !isBad(part) {
				bad = append(bad, part)
			}
		}
		switch random.IntN(3) {
		case 0:
			likely = bad
		case 1:
			likely = []int{parts[random.IntN(len(parts))], parts[random.IntN(len(parts))]}
		}
		deepest := 1 + random.IntN(3)
		s := NewSearch(parts, likely, deepest)
		depth := make(map[int]int) // in which a part has to be left out
		for _, part := range bad {
			depth[part] = 1 + random.IntN(deepest)
		}
		changes := random.IntN(2) * random.IntN(3)
		bound := (len(bad) + 2*changes + 2*deepest - 1) * (bits.Len(uint(len(parts))) + 2)
		for trials := 1; ; trials++ {
			out := SetOf(s.Without())
			accepted := !slices.ContainsFunc(bad, func(part int) bool { return !out.Has(part) || s.Depth < depth[part] })
			if changes > 0 && random.IntN(4) == 0 {
				changes--
				gone := parts[random.IntN(len(parts))]
				parts = slices.DeleteFunc(slices.Clone(parts), func(p int) bool { return p == gone })
				parts = append(parts, 1000+trials)
				bad = slices.DeleteFunc(bad, func(p int) bool { return p == gone })
				s.Become(parts)
				continue
			}
			done, hopeless := s.Answer(accepted)
			if hopeless {
				t.Fatalf("seed %d: hopeless", seed)
			}
			if trials > bound {
				t.Fatalf("seed %d: more than %d trials for %d of %d", seed, bound, len(bad), len(parts))
			}
			if !done {
				continue
			}
			slices.Sort(s.Bad)
			slices.Sort(bad)
			if !slices.Equal(s.Bad, bad) {
				t.Fatalf("seed %d: found %d, want %d", seed, s.Bad, bad)
			}
			if got := SetOf(s.Bad).Others(parts); len(got) != len(s.Good) {
				t.Fatalf("seed %d: the client has %d of %d good parts", seed, len(s.Good), len(got))
			}
			break
		}
	}
}

// TestCauseThatIsGone: a part that has to be left out more deeply is rejected in each trial. If it
// goes meanwhile, no other part counts as rejected.
func TestCauseThatIsGone(t *testing.T) {
	s := NewSearch([]int{0, 1, 2, 3}, nil, 2)
	if done, _ := s.Answer(false); done || slices.Contains(s.suspects, 3) {
		t.Fatalf("the first trial: done %t, suspects %d", done, s.suspects)
	}
	s.Become([]int{0, 1, 2})
	for done := false; !done; {
		done, _ = s.Answer(true)
	}
	if len(s.Bad) > 0 {
		t.Errorf("%d count as rejected", s.Bad)
	}
}

// TestHopelessSearch: the search ends soon for a client that rejects everything, and ends for one
// that rejects at random.
func TestHopelessSearch(t *testing.T) {
	parts := make([]int, 10_000)
	for i := range parts {
		parts[i] = i
	}
	for _, likely := range [][]int{nil, {7}, {1, 2, 3}} {
		s := NewSearch(parts, likely, 3)
		trials, hopeless := 0, false
		for ; !hopeless; trials++ {
			_, hopeless = s.Answer(false)
		}
		if trials > 60 {
			t.Errorf("given up after %d trials", trials)
		}
	}
	random := rand.New(rand.NewPCG(1, 1))
	for range 100 {
		s := NewSearch(parts, nil, 1)
		for done := false; !done; {
			var hopeless bool
			done, hopeless = s.Answer(random.IntN(3) == 0)
			done = done || hopeless
			if s.trials > 2*maxTrials {
				t.Fatal("it does not end")
			}
		}
	}
}
