// SPDX-License-Identifier: Apache-2.0

package pmap

import (
	"fmt"
	"maps"
	"math/bits"
	"math/rand/v2"
	"testing"

	"github.com/pilotkit/pilotkit/internal/test/testmain"
)

func TestMain(m *testing.M) { testmain.Verify(m) }

// The hashes under which the model test runs: one as in real life, and weak ones
// that make long common prefixes and full collisions.
func hashes() map[string]func(int) uint64 {
	return map[string]func(int) uint64{
		"real":      nil,
		"constant":  func(int) uint64 { return 42 },
		"two":       func(k int) uint64 { return uint64(k & 1) },
		"high bits": func(k int) uint64 { return uint64(k) << 58 },
		"deep":      func(k int) uint64 { return uint64(k%7)<<59 | uint64(k%3) },
		"identity":  func(k int) uint64 { return uint64(k) },
	}
}

// model is one random history of a Map, a Live and Go maps side by side, with
// snapshots that must not change.
type model struct {
	m    Map[int, int]
	l    Live[int, int]
	want map[int]int
	old  []frozen
}

type frozen struct {
	m    Map[int, int]
	want map[int]int
}

func newModel(hash func(int) uint64) *model {
	x := &model{want: map[int]int{}}
	x.m.hash.test, x.l.hash.test = hash, hash
	return x
}

func (x *model) step(t *testing.T, op, k, v int) {
	t.Helper()
	switch {
	case op < 4:
		x.m, x.want[k] = x.m.Set(k, v), v
		x.l.Set(k, v)
	case op < 7:
		x.m = x.m.Delete(k)
		x.l.Delete(k)
		delete(x.want, k)
	default:
		x.old = append(x.old, frozen{x.m, maps.Clone(x.want)}, frozen{x.l.Snapshot(), maps.Clone(x.want)})
		if len(x.old) > 8 {
			x.old = x.old[2:]
		}
	}
	got, ok := x.l.Get(k)
	if want, wantOK := x.want[k]; got != want || ok != wantOK {
		t.Fatalf("Live.Get(%d) = %d, %v, want %d, %v", k, got, ok, want, wantOK)
	}
}

func (x *model) check(t *testing.T) {
	t.Helper()
	all := append([]frozen{{x.m, x.want}, {Map[int, int]{x.l.root.Load(), x.l.Len(), x.l.hash}, x.want}}, x.old...)
	for _, f := range all {
		if got := maps.Collect(f.m.All()); !maps.Equal(got, f.want) || f.m.Len() != len(f.want) {
			t.Fatalf("map of %d entries = %v, want %v", f.m.Len(), got, f.want)
		}
		for k, v := range f.want {
			if got, ok := f.m.Get(k); !ok || got != v {
				t.Fatalf("Get(%d) = %d, %v, want %d", k, got, ok, v)
			}
		}
		checkShape(t, f.m.root, 0)
	}
}

// checkShape checks the invariants that keep trees small: no child that could be an entry, and the
// right number of slots.
func checkShape(t *testing.T, n *node, shift int) {
	t.Helper()
	if n == nil {
		return
	}
	if n.entryMap&n.childMap != 0 {
		t.Fatal("a slot holds an entry and a child")
	}
	if shift > 0 && n.single() != nil {
		t.Fatal("a child holds a single entry")
	}
	if n.isBucket() != (shift >= bucketShift) {
		t.Fatalf("at the depth %d isBucket() = %v", shift, n.isBucket())
	}
	if used := bits.OnesCount64(n.entryMap | n.childMap); !n.isBucket() && used != len(n.slots) {
		t.Fatalf("the maps have %d bits for %d slots", used, len(n.slots))
	}
	i := 0
	for used := n.childMap | n.entryMap; used != 0; used &= used - 1 {
		if n.childMap&used&-used != 0 {
			checkShape(t, n.child(i), shift+levelBits)
		}
		i++
	}
}

func TestModel(t *testing.T) {
	for name, hash := range hashes() {
		t.Run(name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(1, 2))
			for round := range 20 {
				x, keys := newModel(hash), 1+r.IntN(300)
				for range 400 {
					x.step(t, r.IntN(8), r.IntN(keys), round*1000+r.IntN(1000))
				}
				x.check(t)
			}
		})
	}
}

func FuzzModel(f *testing.F) {
	f.Add([]byte{0, 1, 1, 0, 2, 2, 7, 0, 0, 4, 1, 0})
	f.Fuzz(func(t *testing.T, ops []byte) {
		for _, hash := range hashes() {
			x := newModel(hash)
			for i := 0; i+2 < len(ops); i += 3 {
				x.step(t, int(ops[i]%8), int(ops[i+1]), int(ops[i+2]))
			}
			x.check(t)
		}
	})
}

func TestZero(t *testing.T) {
	var m Map[string, int]
	var l Live[string, int]
	if _, ok := m.Get("a"); ok || m.Len() != 0 || m.Delete("a").Len() != 0 {
		t.Error("the zero Map is not empty")
	}
	l.Delete("a")
	if _, ok := l.Get("a"); ok || l.Len() != 0 || l.Snapshot().Len() != 0 {
		t.Error("the zero Live is not empty")
	}
	for range m.All() {
		t.Error("the zero Map has entries")
	}
}

func TestAllStops(t *testing.T) {
	var l Live[int, int]
	for i := range 100 {
		l.Set(i, i)
	}
	n := 0
	for range l.Snapshot().All() {
		if n++; n == 3 {
			break
		}
	}
	if n != 3 {
		t.Errorf("the loop ran %d times, want 3", n)
	}
}

// Readers of a Live see each key at a value that only grows, and snapshots at one
// that never changes, while a writer replaces, adds and removes entries.
func TestLiveReaders(t *testing.T) {
	var l Live[string, int]
	const keys = 200
	for k := range keys {
		l.Set(fmt.Sprint(k), 0)
	}
	stop, done := make(chan struct{}), make(chan error, 2)
	for range 2 {
		go func() { done <- readGrowing(&l, keys, stop) }()
	}
	for i := 1; i < 200; i++ {
		for k := range keys {
			l.Set(fmt.Sprint(k), i)
			l.Set(fmt.Sprint("other", k), i)
		}
		snap := l.Snapshot()
		for k := range keys {
			l.Delete(fmt.Sprint("other", k))
		}
		if n := snap.Len(); n != 2*keys {
			t.Errorf("the snapshot has %d entries, want %d", n, 2*keys)
		}
	}
	close(stop)
	for range 2 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

func readGrowing(l *Live[string, int], keys int, stop <-chan struct{}) error {
	seen := make([]int, keys)
	for {
		for k := range keys {
			v, ok := l.Get(fmt.Sprint(k))
			if !ok || v < seen[k] {
				return fmt.Errorf("Get(%d) = %d, %v after %d", k, v, ok, seen[k])
			}
			seen[k] = v
		}
		select {
		case <-stop:
			return nil
		default:
		}
	}
}
