// SPDX-License-Identifier: Apache-2.0

package listing

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/pilotkit/pilotkit/configstore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// contents are objects that do not change.
type contents map[Key]*configstore.Config

func (c contents) Get(k Key) *configstore.Config { return c[k] }

func (c contents) Each(yield func(*configstore.Config) bool) {
	for _, config := range c {
		if !yield(config) {
			return
		}
	}
}

// slow are objects that call a function when they are read, as often as it is set.
type slow struct {
	contents
	s *store
}

func (o slow) Get(k Key) *configstore.Config {
	o.s.interrupted()
	return o.contents.Get(k)
}

func (o slow) Each(yield func(*configstore.Config) bool) {
	o.s.interrupted()
	o.contents.Each(yield)
}

// store follows the steps of the package comment.
type store struct {
	mu       sync.Mutex
	objects  contents
	freezes  bool
	numbers  bool // Note gets the revision before
	revision uint64
	// interrupt is called, once, when frozen objects are read.
	interrupt func()
	lists     *Lists
}

func newStore(freezes bool) *store {
	s := &store{objects: contents{}, freezes: freezes}
	s.lists = New(&s.mu, s)
	return s
}

func (s *store) Get(k Key) *configstore.Config { return s.objects.Get(k) }

func (s *store) Each(yield func(*configstore.Config) bool) { s.objects.Each(yield) }

func (s *store) Freeze() Objects {
	if !s.freezes {
		return nil
	}
	return slow{maps.Clone(s.objects), s}
}

func (s *store) interrupted() {
	if f := s.interrupt; f != nil {
		s.interrupt = nil
		f()
	}
}

// set stores a new object, or deletes it.
func (s *store) set(k Key, exists bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	grown := 0
	if exists {
		grown++
	}
	if s.objects[k] != nil {
		grown--
	}
	s.revision++
	c := Change{Grown: grown, Revision: s.revision}
	if s.objects[k] != nil && s.numbers {
		c.Last, _ = strconv.ParseUint(s.objects[k].ResourceVersion, 10, 64)
	}
	s.lists.Note(k, c)
	if exists {
		s.objects[k] = &configstore.Config{Meta: configstore.Meta{
			Namespace: k.Namespace, Name: k.Name, ResourceVersion: strconv.FormatUint(s.revision, 10),
		}}
		return
	}
	delete(s.objects, k)
	s.lists.Drop(k.Namespace)
}

func (s *store) fill(namespace string, n int) {
	for i := range n {
		s.set(Key{namespace, fmt.Sprintf("o%06d", i)}, true)
	}
}

func (s *store) list(namespace string) []*configstore.Config {
	if v := s.lists.List(namespace); v != nil {
		return v.Items
	}
	return nil
}

// want is what list has to return.
func (s *store) want(namespace string) []*configstore.Config {
	s.mu.Lock()
	defer s.mu.Unlock()
	return wanted(s.objects, namespace)
}

func wanted(objects contents, namespace string) []*configstore.Config {
	var out []*configstore.Config
	for _, k := range slices.SortedFunc(maps.Keys(objects), Key.Compare) {
		if namespace == configstore.NamespaceAll || k.Namespace == namespace {
			out = append(out, objects[k])
		}
	}
	return out
}

func (s *store) validate(t *testing.T) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.lists.Validate(); err != nil {
		t.Fatal(err)
	}
}

func (s *store) expect(t *testing.T, namespaces ...string) {
	t.Helper()
	for _, ns := range namespaces {
		if got, want := s.list(ns), s.want(ns); !slices.Equal(got, want) {
			t.Fatalf("List(%q) = %s, want %s", ns, text(got), text(want))
		}
	}
}

func text(items []*configstore.Config) string {
	var out []string
	for _, c := range items {
		out = append(out, c.Namespace+"/"+c.Name+"@"+c.ResourceVersion)
	}
	return fmt.Sprintf("%d: %s", len(out), strings.Join(out, " "))
}

func bothWays(t *testing.T, f func(t *testing.T, s *store)) {
	t.Helper()
	for name, freezes := range map[string]bool{"freezing": true, "locked": false} {
		t.Run(name, func(t *testing.T) { f(t, newStore(freezes)) })
		t.Run(name+" with numbers", func(t *testing.T) {
			s := newStore(freezes)
			s.numbers = true
			f(t, s)
		})
	}
}

// After each step of a random history the invariants hold, and lists that are read
// are those of the objects, as are those of moments that were captured.
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
			case n < 3: // a burst: what is pending is shortened or lost
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

// What changes while a list is made is in the next one, and a moment captured
// meanwhile has its own.
func TestChangesWhileAListIsMade(t *testing.T) {
	for name, tt := range map[string]struct {
		before, during func(s *store)
	}{
		"a lost list, few changes":   {func(s *store) { s.fill("a", 200) }, func(s *store) { s.fill("a", 3) }},
		"a lost list, many changes":  {func(s *store) { s.fill("a", 200) }, func(s *store) { s.fill("b", 2000) }},
		"many pending, few changes":  {func(s *store) { s.fill("a", 40) }, func(s *store) { s.set(Key{"a", "o000001"}, false) }},
		"many pending, the same key": {func(s *store) { s.fill("a", 40) }, func(s *store) { s.fill("a", 1) }},
		"many pending, duplicates": {func(s *store) { s.fill("a", 40) }, func(s *store) {
			for range 200 {
				s.fill("a", 1)
			}
		}},
		"many pending, all gone": {func(s *store) { s.fill("a", 40) }, func(s *store) {
			for k := range maps.Clone(s.objects) {
				s.set(k, false)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			for i, ns := range []string{"a", "", "a", ""} {
				s := newStore(true)
				s.numbers = i > 1
				tt.before(s)
				want := s.want(ns)
				var capture Capture
				var objects contents
				called := false
				s.interrupt = func() {
					called = true
					tt.during(s)
					s.mu.Lock()
					capture, objects = s.lists.Capture(), maps.Clone(s.objects)
					s.mu.Unlock()
					s.validate(t)
				}
				if got := s.list(ns); !slices.Equal(got, want) && !slices.Equal(got, s.want(ns)) {
					t.Errorf("List(%q) = %s, want %s", ns, text(got), text(want))
				}
				if !called {
					t.Fatal("nothing changed meanwhile")
				}
				s.validate(t)
				s.expect(t, "a", "b", "")
				s.validate(t)
				if got := capture.List(objects); !slices.Equal(got, wanted(objects, "")) {
					t.Errorf("captured meanwhile: %s, want %s", text(got), text(wanted(objects, "")))
				}
			}
		})
	}
}

func TestUnchangedListsAreHandedOutAgain(t *testing.T) {
	bothWays(t, func(t *testing.T, s *store) {
		t.Helper()
		s.fill("a", 3)
		s.fill("b", 100)
		for _, ns := range []string{"a", "b", ""} {
			first := s.lists.List(ns)
			if again := s.lists.List(ns); again != first {
				t.Errorf("List(%q) was made again", ns)
			}
			if n := testing.AllocsPerRun(10, func() { s.lists.List(ns) }); n != 0 {
				t.Errorf("List(%q) allocates %v times", ns, n)
			}
		}
		b := s.lists.List("b")
		s.fill("a", 1)
		if s.lists.List("b") != b {
			t.Error("a change in one namespace made the list of another one anew")
		}
	})
}

// No caller's append can write to what others see.
func TestListsHaveNoRoom(t *testing.T) {
	bothWays(t, func(t *testing.T, s *store) {
		t.Helper()
		s.fill("a", 100)
		s.fill("b", 2)
		s.set(Key{"a", "o000001"}, false)
		for _, ns := range []string{"", "a", "b"} {
			if list := s.list(ns); len(list) != cap(list) {
				t.Errorf("List(%q) has %d items and room for %d", ns, len(list), cap(list))
			}
		}
		if part := InNamespace(s.list(""), "a"); len(part) != 99 || cap(part) != 99 {
			t.Errorf("the part of a namespace has %d items and room for %d", len(part), cap(part))
		}
		if part := InNamespace(s.list(""), "c"); part != nil {
			t.Errorf("the part of no namespace is %v, want nil", part)
		}
	})
}

// The revision of a list shows whether it has what changed after a moment.
func TestRevisions(t *testing.T) {
	bothWays(t, func(t *testing.T, s *store) {
		t.Helper()
		s.fill("a", 100)
		s.fill("b", 1)
		for ns, want := range map[string]uint64{"a": 100, "b": 101, "": 101} {
			if got := s.lists.List(ns).Revision; got != want {
				t.Errorf("the list of %q has the revision %d, want %d", ns, got, want)
			}
		}
	})
}

// A reader that has looked up a namespace that was emptied meanwhile, and filled
// again, finds it empty: not what happens to have the name of something it had.
func TestListOfADroppedNamespace(t *testing.T) {
	bothWays(t, func(t *testing.T, s *store) {
		t.Helper()
		s.fill("a", 1)
		old, _ := s.lists.namespaces.Get("a")
		s.set(Key{"a", "o000000"}, false)
		s.fill("a", 2)
		if v := s.lists.refresh(old, "a"); len(v.Items) != 0 {
			t.Errorf("the old list has %s", text(v.Items))
		}
		s.expect(t, "a", "")
	})
}

// The same if the list was being made when the namespace lost its last object.
func TestNamespaceDroppedWhileItsListIsMade(t *testing.T) {
	s := newStore(true)
	s.fill("a", 40)
	old, _ := s.lists.namespaces.Get("a")
	s.interrupt = func() {
		for k := range maps.Clone(s.objects) {
			s.set(k, false)
		}
	}
	s.list("a")
	s.fill("a", 2)
	if v := s.lists.refresh(old, "a"); len(v.Items) != 0 {
		t.Errorf("the old list has %s", text(v.Items))
	}
	s.expect(t, "a", "")
}

// What is remembered, and namespaces that were emptied, cost no memory in the long
// run, and a small set of objects that keeps changing is not lost.
func TestPendingIsBounded(t *testing.T) {
	s := newStore(true)
	s.fill("stays", 10)
	s.list("")
	s.list("stays")
	for i := range 1000 {
		s.set(Key{fmt.Sprint("ns", i), "brief"}, true)
		s.set(Key{fmt.Sprint("ns", i), "brief"}, false)
		s.set(Key{"stays", fmt.Sprint("brief", i)}, true)
		s.set(Key{"stays", fmt.Sprint("brief", i)}, false)
	}
	if n := s.lists.namespaces.Len(); n != 1 {
		t.Errorf("%d namespaces are kept", n)
	}
	stays, _ := s.lists.namespaces.Get("stays")
	for name, l := range map[string]*list{"stays": stays, "all": &s.lists.all} {
		if n := len(l.pending); n > 100 {
			t.Errorf("%d keys are pending for %s", n, name)
		}
	}
	s.fill("stays", 200)
	s.list("")
	s.list("stays")
	for range 10 {
		s.fill("stays", 200)
	}
	if stays.state != kept || s.lists.all.state != kept {
		t.Errorf("lists of 200 objects that keep changing are lost: %v, %v", stays.state, s.lists.all.state)
	}
	s.validate(t)
}

// Readers and writers at the same time: each list is sorted, and no reader goes
// back.
func TestConcurrentReaders(t *testing.T) {
	bothWays(t, func(t *testing.T, s *store) {
		t.Helper()
		s.fill("a", 10)
		stop := make(chan struct{})
		var readers, writers sync.WaitGroup
		for range 4 {
			readers.Go(func() {
				var last uint64
				for {
					select {
					case <-stop:
						return
					default:
					}
					v := s.lists.List("")
					if v.Revision < last {
						t.Errorf("a list of revision %d came after one of %d", v.Revision, last)
					}
					last = v.Revision
					if !slices.IsSortedFunc(v.Items, func(a, b *configstore.Config) int { return KeyOf(a).Compare(KeyOf(b)) }) {
						t.Error("a list is not sorted")
					}
					s.lists.List("b")
				}
			})
		}
		for w := range 2 {
			writers.Go(func() {
				for i := range 1000 {
					s.set(Key{"ab"[w : w+1], "o" + strconv.Itoa(i*7919%150)}, i%3 > 0)
				}
			})
		}
		writers.Wait()
		close(stop)
		readers.Wait()
		s.validate(t)
		s.expect(t, "a", "b", "")
		s.validate(t)
	})
}

// An object that keeps changing is remembered once if its store gives the revision
// before.
func TestAKeyIsPendingOnce(t *testing.T) {
	s := newStore(true)
	s.numbers = true
	s.fill("a", 10)
	for _, ns := range []string{"a", ""} {
		s.list(ns)
	}
	for range 20 {
		s.fill("a", 3)
	}
	a, _ := s.lists.namespaces.Get("a")
	if n, m := len(a.pending), len(s.lists.all.pending); n != 3 || m != 3 {
		t.Errorf("%d and %d keys are pending after 60 changes of 3 objects, want 3", n, m)
	}
	s.expect(t, "a", "")
}

// The list of a namespace that is a part of the list of all may have changes that
// came after it was begun: its revision covers them.
func TestRevisionOfAPart(t *testing.T) {
	s := newStore(true)
	s.fill("a", 200)
	a, _ := s.lists.namespaces.Get("a")
	s.lists.all.making.Lock()
	listed := make(chan *Version)
	go func() { listed <- s.lists.List("a") }()
	for begun := false; !begun; runtime.Gosched() {
		s.mu.Lock()
		begun = a.state == remaking
		s.mu.Unlock()
	}
	s.fill("a", 1)
	s.lists.all.making.Unlock()
	v := <-listed
	if want := s.want("a"); !slices.Equal(v.Items, want) || v.Revision != 201 {
		t.Errorf("the list has the revision %d and %s, want 201 and %s", v.Revision, text(v.Items), text(want))
	}
}
