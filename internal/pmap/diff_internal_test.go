// SPDX-License-Identifier: Apache-2.0

package pmap

import (
	"maps"
	"math/rand/v2"
	"testing"
)

// TestChangesModel compares the result of Changes between any two of many maps, derived from each
// other or not, with a comparison of their contents.
func TestChangesModel(t *testing.T) {
	for name, hash := range hashes() {
		t.Run(name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(7, 8))
			x := newModel(hash)
			for range 400 {
				x.step(t, r.IntN(9), r.IntN(60), r.IntN(3))
				for _, a := range x.old {
					checkChanges(t, a.m, x.m)
					checkChanges(t, x.m, a.m)
				}
			}
		})
	}
}

func checkChanges(t *testing.T, old, m Map[int, int]) {
	t.Helper()
	before, after := map[int]*Entry[int, int]{}, map[int]*Entry[int, int]{}
	Changes(old, m, func(e, f *Entry[int, int]) bool {
		switch {
		case e == f:
			t.Fatal("an entry that is in both maps was yielded")
		case e != nil && f != nil && e.Key != f.Key:
			t.Fatalf("entries of keys %d and %d were yielded together", e.Key, f.Key)
		}
		if e != nil {
			if before[e.Key] != nil {
				t.Fatalf("key %d was yielded twice", e.Key)
			}
			before[e.Key] = e
		}
		if f != nil {
			if after[f.Key] != nil {
				t.Fatalf("key %d was yielded twice", f.Key)
			}
			after[f.Key] = f
		}
		return true
	})
	wantBefore, wantAfter := map[int]*Entry[int, int]{}, map[int]*Entry[int, int]{}
	old.Entries(func(e *Entry[int, int]) bool {
		if m.Entry(e.Key) != e {
			wantBefore[e.Key] = e
		}
		return true
	})
	m.Entries(func(e *Entry[int, int]) bool {
		if old.Entry(e.Key) != e {
			wantAfter[e.Key] = e
		}
		return true
	})
	if !maps.Equal(before, wantBefore) || !maps.Equal(after, wantAfter) {
		t.Fatalf("Changes yielded %v and %v, want %v and %v", before, after, wantBefore, wantAfter)
	}
}

func TestChangesStops(t *testing.T) {
	var l Live[int, int]
	for k := range 100 {
		l.Set(k, k)
	}
	full := l.Snapshot()
	half := full
	for k := range 50 {
		half = half.Set(k, -k)
	}
	more := full
	for k := range 100 {
		more = more.Set(100+k, k)
	}
	var other Live[int, int]
	other.Set(1, 1)
	for name, pair := range map[string][2]Map[int, int]{
		"from nothing": {{}, full}, "to nothing": {full, {}}, "related": {full, half},
		"of another shape": {full, more}, "unrelated": {other.Snapshot(), full},
	} {
		n := 0
		Changes(pair[0], pair[1], func(_, _ *Entry[int, int]) bool {
			n++
			return false
		})
		if n != 1 {
			t.Errorf("%s: %d calls after the first returned false", name, n-1)
		}
	}
}

// TestChangesSkipsWhatIsShared: the cost is that of the change.
func TestChangesSkipsWhatIsShared(t *testing.T) {
	var l Live[int, int]
	for k := range 100_000 {
		l.Set(k, k)
	}
	m := l.Snapshot()
	next := m.Set(7, 8).Delete(9).Set(-1, 1)
	n := 0
	allocs := testing.AllocsPerRun(1, func() {
		n = 0
		Changes(m, next, func(_, _ *Entry[int, int]) bool {
			n++
			return true
		})
	})
	if n != 3 || allocs > 12 {
		t.Errorf("three changes: %d were found, with %.0f allocations", n, allocs)
	}
}

func TestLiveOfAMap(t *testing.T) {
	var m Map[int, int]
	for k := range 1000 {
		m = m.Set(k, k)
	}
	l := m.Live()
	for k := range 500 {
		l.Set(k, -k)
		l.Delete(k + 500)
	}
	l.Set(5000, 1)
	if got, _ := m.Get(7); got != 7 || m.Len() != 1000 {
		t.Errorf("the map has %d entries and %d for 7 after changes of its Live", m.Len(), got)
	}
	if got, _ := l.Get(7); got != -7 || l.Len() != 501 {
		t.Errorf("the Live has %d entries and %d for 7", l.Len(), got)
	}
	empty := Map[int, int]{}.Live()
	empty.Set(1, 2)
	if got, _ := empty.Get(1); got != 2 {
		t.Errorf("the Live of an empty map has %d for 1", got)
	}
}

func BenchmarkChangesOfOne(b *testing.B) {
	for _, n := range []int{1000, 50_000} {
		var l Live[int, int]
		for k := range n {
			l.Set(k, k)
		}
		m := l.Snapshot()
		next := m.Set(n/2, -1)
		b.Run(map[bool]string{true: "n=50000", false: "n=1000"}[n > 1000], func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				Changes(m, next, func(_, _ *Entry[int, int]) bool { return true })
			}
		})
	}
}
