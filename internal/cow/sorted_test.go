// SPDX-License-Identifier: Apache-2.0

package cow_test

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/pilotkit/pilotkit/internal/cow"
	"github.com/pilotkit/pilotkit/internal/test/histories"
	"github.com/pilotkit/pilotkit/internal/test/testmain"
)

func TestMain(m *testing.M) { testmain.Verify(m) }

// entry has an order, key, and an identity, id: several entries have one key.
type entry struct{ key, id int }

func byKey(a, b entry) int   { return cmp.Compare(a.key, b.key) }
func same(a, b entry) bool   { return a.id == b.id }
func always(_, _ entry) bool { return true }

// model is the same sequence as a plain slice.
type model []entry

func (m model) insert(v entry) model {
	i := len(m)
	for i > 0 && byKey(m[i-1], v) > 0 {
		i--
	}
	return slices.Insert(slices.Clone(m), i, v)
}

func (m model) delete(v entry) (model, bool) {
	for i, w := range m {
		if byKey(w, v) == 0 && same(w, v) {
			return slices.Delete(slices.Clone(m), i, i+1), true
		}
	}
	return m, false
}

func (m model) replace(old, v entry) (model, bool) {
	out, ok := m.delete(old)
	if ok {
		out = out.insert(v)
	}
	return out, ok
}

func (m model) find(v entry) (entry, bool) {
	for _, w := range m {
		if byKey(w, v) == 0 {
			return w, true
		}
	}
	return entry{}, false
}

func check(t *testing.T, s cow.Sorted[entry], want model) {
	t.Helper()
	if s.Len() != len(want) {
		t.Fatalf("Len() = %d, want %d", s.Len(), len(want))
	}
	if got := s.Slice(); !slices.Equal(got, want) {
		t.Fatalf("Slice() differs:\n%s", gocmp.Diff([]entry(want), got, gocmp.AllowUnexported(entry{})))
	}
	if got := slices.Collect(s.All()); !slices.Equal(got, want) {
		t.Fatalf("All() differs from Slice()")
	}
	if got := slices.Concat(slices.Collect(s.Chunks())...); !slices.Equal(got, want) {
		t.Fatalf("Chunks() differs from Slice()")
	}
}

func TestZeroValueIsEmpty(t *testing.T) {
	var s cow.Sorted[entry]
	check(t, s, nil)
	if _, ok := s.Find(byKey, entry{}); ok {
		t.Error("Find() found something in an empty sequence")
	}
	if _, ok := s.Delete(byKey, entry{}, always); ok {
		t.Error("Delete() deleted something from an empty sequence")
	}
	if _, ok := s.Replace(byKey, entry{}, entry{}, always); ok {
		t.Error("Replace() replaced something in an empty sequence")
	}
	if s.Slice() != nil {
		t.Error("Slice() of an empty sequence is not nil")
	}
	check(t, cow.FromSlice[entry](nil), nil)
}

func TestFromSlice(t *testing.T) {
	for _, n := range []int{1, 2, 95, 96, 97, 128, 129, 192, 193, 1000, 10_007} {
		var in []entry
		for i := range n {
			in = append(in, entry{key: i / 3, id: i})
		}
		s := cow.FromSlice(in)
		check(t, s, in)
		in[0].id = -1
		if s.Slice()[0].id == -1 {
			t.Errorf("n=%d: FromSlice kept the caller's slice", n)
		}
	}
}

func TestAllStopsEarly(t *testing.T) {
	s := cow.FromSlice([]entry{{1, 1}, {2, 2}, {3, 3}})
	var got []entry
	for v := range s.All() {
		if got = append(got, v); len(got) == 2 {
			break
		}
	}
	if !slices.Equal(got, []entry{{1, 1}, {2, 2}}) {
		t.Errorf("All() gave %v before the break", got)
	}
	chunks := 0
	for range sequence(1000).Chunks() {
		chunks++
		break
	}
	if chunks != 1 {
		t.Errorf("Chunks() gave %d before the break", chunks)
	}
}

// TestHistories makes random changes and compares with a plain slice, also every
// earlier version, which no later change may touch.
func TestHistories(t *testing.T) {
	for _, seed := range histories.Seeds(t, 40) {
		r := rand.New(rand.NewPCG(seed, 1))
		steps := make([]byte, 1200)
		for i := range steps {
			steps[i] = byte(r.Uint32())
		}
		replay(t, steps, 1+int(seed%7)*40)
	}
}

func FuzzHistories(f *testing.F) {
	f.Add([]byte("insert some, delete some, replace some; many elements of one key"), uint8(3))
	f.Fuzz(func(t *testing.T, steps []byte, keys uint8) {
		if len(steps) > 2000 {
			return
		}
		replay(t, steps, 1+int(keys))
	})
}

type version struct {
	s    cow.Sorted[entry]
	want model
}

// replay makes a change for each step, in an editor while bit 7 is set.
func replay(t *testing.T, steps []byte, keys int) {
	t.Helper()
	var (
		s        cow.Sorted[entry]
		editor   *cow.Editor[entry]
		want     model
		versions []version
		r        = rand.New(rand.NewPCG(uint64(len(steps)), uint64(keys)))
	)
	for id, step := range steps {
		if edit := step&0x80 != 0; edit && editor == nil {
			editor = s.Edit(int(step & 3))
		} else if !edit && editor != nil {
			s, editor = editor.Sorted(), nil
		}
		change := pick(r, step, keys, id, want)
		var ok, wantOK bool
		want, wantOK = change.onModel(want)
		if editor == nil {
			s, ok = change.onSorted(s)
		} else {
			ok = change.onEditor(editor)
			findNear(t, editor, want, r.IntN(keys))
			if step&0x40 != 0 {
				s = editor.Sorted()
			}
		}
		if ok != wantOK {
			t.Fatalf("step %d: %+v returned %v, want %v", id, change, ok, wantOK)
		}
		if editor == nil || step&0x40 != 0 {
			check(t, s, want)
			versions = append(versions, version{s, want})
		}
	}
	if editor != nil {
		check(t, editor.Sorted(), want)
	}
	for i, v := range versions {
		if i%16 == 0 {
			check(t, v.s, v.want)
		}
	}
	if len(versions) > 0 {
		checkFind(t, versions[len(versions)-1], keys)
	}
}

// findNear looks for a key and for its neighbours, which an editor finds from
// where it was.
func findNear(t *testing.T, e *cow.Editor[entry], want model, key int) {
	t.Helper()
	for _, k := range []int{key, key, key + 1, key, key - 1, key + 2} {
		got, ok := e.Find(byKey, entry{key: k})
		if wantEntry, wantOK := want.find(entry{key: k}); got != wantEntry || ok != wantOK {
			t.Fatalf("Editor.Find(%d) = %v, %v, want %v, %v", k, got, ok, wantEntry, wantOK)
		}
	}
}

func checkFind(t *testing.T, v version, keys int) {
	t.Helper()
	for k := range keys {
		got, ok := v.s.Find(byKey, entry{key: k})
		want, wantOK := v.want.find(entry{key: k})
		if got != want || ok != wantOK {
			t.Fatalf("Find(%d) = %v, %v, want %v, %v", k, got, ok, want, wantOK)
		}
		if got, ok := v.s.FindFunc(func(e entry) int { return byKey(e, entry{key: k}) }); got != want || ok != wantOK {
			t.Fatalf("FindFunc(%d) = %v, %v, want %v, %v", k, got, ok, want, wantOK)
		}
		all := slices.DeleteFunc(slices.Clone(v.want), func(w entry) bool { return w.key != k })
		if matching := slices.Collect(v.s.Matching(byKey, entry{key: k})); !slices.Equal(matching, all) {
			t.Fatalf("Matching(%d) = %v, want %v", k, matching, all)
		}
	}
}

type change struct {
	insert, remove bool
	old, v         entry
}

func pick(r *rand.Rand, step byte, keys, id int, now model) change {
	c := change{old: entry{key: r.IntN(keys), id: -1}, v: entry{key: r.IntN(keys), id: id}}
	if len(now) > 0 {
		c.old = now[r.IntN(len(now))]
	}
	switch step & 7 {
	case 0, 1, 2, 3:
		c.insert = true
	case 4:
		c.remove = true
	case 5:
		c.insert, c.remove = true, true
	case 6: // in place
		c.insert, c.remove, c.v.key = true, true, c.old.key
	default: // of something that is not there
		c.remove, c.old.id = true, -1
	}
	return c
}

func (c change) onModel(m model) (model, bool) {
	switch {
	case c.insert && c.remove:
		return m.replace(c.old, c.v)
	case c.insert:
		return m.insert(c.v), true
	default:
		return m.delete(c.old)
	}
}

func (c change) onSorted(s cow.Sorted[entry]) (cow.Sorted[entry], bool) {
	switch {
	case c.insert && c.remove:
		return s.Replace(byKey, c.old, c.v, same)
	case c.insert:
		return s.Insert(byKey, c.v), true
	default:
		return s.Delete(byKey, c.old, same)
	}
}

func (c change) onEditor(e *cow.Editor[entry]) bool {
	switch {
	case c.insert && c.remove:
		return e.Replace(byKey, c.old, c.v, same)
	case c.insert:
		e.Insert(byKey, c.v)
		return true
	default:
		return e.Delete(byKey, c.old, same)
	}
}

// TestDeletesLeaveFewLeaves: after most of a large sequence is deleted, a change
// copies no more than in a sequence that was small from the start.
func TestDeletesLeaveFewLeaves(t *testing.T) {
	s := sequence(20_000)
	e := s.Edit(20_000)
	for i := range 20_000 {
		if i%100 == 0 {
			continue
		}
		if i%2 == 0 {
			e.Delete(byKey, entry{key: i}, always)
			continue
		}
		s, _ = e.Sorted().Delete(byKey, entry{key: i}, always)
		e = s.Edit(2)
	}
	if s = e.Sorted(); s.Len() != 200 || len(s.Leaves()) > 8 {
		t.Errorf("%d elements in leaves of %v, want 200 in at most 8 leaves", s.Len(), s.Leaves())
	}
}

// TestInsertsKeepLeavesSmall: however a sequence grows, no leaf is larger than
// 128 and, on average, they are at least half full.
func TestInsertsKeepLeavesSmall(t *testing.T) {
	for name, key := range map[string]func(i int) int{
		"ascending":  func(i int) int { return i },
		"descending": func(i int) int { return -i },
		"scattered":  func(i int) int { return i * 7919 % 10_000 },
		"equal":      func(int) int { return 0 },
	} {
		var s cow.Sorted[entry]
		for i := range 10_000 {
			s = s.Insert(byKey, entry{key: key(i), id: i})
		}
		leaves := s.Leaves()
		if slices.Max(leaves) > 128 || len(leaves) > 10_000/64+1 {
			t.Errorf("%s: 10000 elements are in %d leaves of up to %d", name, len(leaves), slices.Max(leaves))
		}
	}
}

func TestReadersDuringChanges(t *testing.T) {
	s := sequence(5000)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 20 {
				if n := len(slices.Collect(s.All())); n != 5000 {
					t.Errorf("All() gave %d elements, want 5000", n)
				}
			}
		})
	}
	e := s.Edit(5000)
	for i := range 5000 {
		e.Replace(byKey, entry{key: i}, entry{key: i, id: -i}, always)
		if i%3 == 0 {
			e.Insert(byKey, entry{key: i, id: 1})
		}
	}
	wg.Wait()
}

func sequence(n int) cow.Sorted[entry] {
	in := make([]entry, n)
	for i := range in {
		in[i] = entry{key: i, id: i}
	}
	return cow.FromSlice(in)
}

// TestLoweredSizes runs the histories with leaves of one and of three elements.
func TestLoweredSizes(t *testing.T) { testmain.Lowered(t, "^TestHistories$") }
