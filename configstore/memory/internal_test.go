// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"fmt"
	"testing"

	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/pilotkit/pilotkit/configstore"
)

// These tests stop the store at moments that other tests can only hope to meet.

func testGVK() configstore.GroupVersionKind {
	return configstore.GroupVersionKind{Group: "test.example.com", Version: "v1", Kind: "Widget"}
}

func testObject(name, value string) configstore.Config {
	return configstore.Config{
		Meta: configstore.Meta{GroupVersionKind: testGVK(), Namespace: "a", Name: name},
		Spec: wrapperspb.String(value),
	}
}

func testStore(t *testing.T, names ...string) (*Store, *kind) {
	t.Helper()
	schemas := configstore.NewSchemasBuilder().MustAdd(configstore.Schema{
		GroupVersionKind: testGVK(), Spec: &wrapperspb.StringValue{},
	}).Build()
	s := Make(schemas)
	for _, name := range names {
		if _, err := s.Create(testObject(name, "old")); err != nil {
			t.Fatal(err)
		}
	}
	return s, s.kinds.all[0]
}

// state is what a reader sees of the namespace "a".
func state(s *Store) string {
	text := ""
	for _, name := range []string{"changed", "gone", "new"} {
		if c := s.Get(testGVK(), name, "a"); c != nil {
			text += name + "=" + c.Spec.(*wrapperspb.StringValue).GetValue() + " "
		}
	}
	for _, ns := range []string{"a", ""} {
		for _, c := range s.List(testGVK(), ns) {
			text += c.Name + ":" + c.Spec.(*wrapperspb.StringValue).GetValue() + " "
		}
	}
	return text
}

func TestUncommittedIsInvisible(t *testing.T) {
	s, _ := testStore(t, "changed", "gone")
	before := "changed=old gone=old changed:old gone:old changed:old gone:old "
	if got := state(s); got != before {
		t.Fatalf("before: %s", got)
	}
	s.mu.Lock()
	p := &s.plan
	p.begin(s)
	for _, r := range []request{
		{op: configstore.OpUpdate, config: testObject("changed", "new")},
		{op: configstore.OpDelete, config: testObject("gone", "")},
		{op: configstore.OpCreate, config: testObject("new", "new")},
	} {
		if err := s.prepare(&r); err != nil {
			t.Error(err)
		}
		if _, err := p.add(&r); err != nil {
			t.Error(err)
		}
	}
	p.install()
	if got := state(s); got != before {
		t.Errorf("while it is installed: %s", got)
	}
	s.committed.Store(p.revision)
	for _, name := range []string{"changed", "new"} {
		if c := s.Get(testGVK(), name, "a"); c == nil || c.Spec.(*wrapperspb.StringValue).GetValue() != "new" {
			t.Errorf("committed, but not settled: %s is %v", name, c)
		}
	}
	if c := s.Get(testGVK(), "gone", "a"); c != nil {
		t.Errorf("committed, but not settled: gone is %v", c)
	}
	p.settle()
	p.end()
	s.mu.Unlock()
	if got, want := state(s), "changed=new new=new changed:new new:new changed:new new:new "; got != want {
		t.Errorf("after: %s, want %s", got, want)
	}
}

// A list that is finished late lacks what was committed meanwhile.
func TestListInstalledLate(t *testing.T) {
	for _, ns := range []string{"a", ""} {
		s, k := testStore(t, "changed", "gone")
		if ns == "" {
			s.List(testGVK(), ns)
			_, _ = s.Update(testObject("gone", "noted"))
		}
		sc := k.scope(ns)
		s.mu.Lock()
		c := sc.capture(true)
		frozen := k.objects.Snapshot()
		s.mu.Unlock()
		l := c.update(frozen.Entry, frozen)
		if _, err := s.Update(testObject("changed", "new")); err != nil {
			t.Fatal(err)
		}
		s.mu.Lock()
		c.install(l)
		s.mu.Unlock()
		if got := s.List(testGVK(), ns)[0].Spec.(*wrapperspb.StringValue).GetValue(); got != "new" {
			t.Errorf("List(%q) has the value %s", ns, got)
		}
	}
}

// Nor does it count when what was noted has been compacted meanwhile.
func TestListInstalledTooLate(t *testing.T) {
	s, k := testStore(t, "gone", "changed")
	sc := k.scope("a")
	s.mu.Lock()
	c := sc.capture(true)
	frozen := k.objects.Snapshot()
	s.mu.Unlock()
	l := c.update(frozen.Entry, frozen)
	if _, err := s.Update(testObject("changed", "new")); err != nil {
		t.Fatal(err)
	}
	if err := s.Delete(testGVK(), "gone", "a", nil); err != nil {
		t.Fatal(err)
	}
	compact(t, s, sc)
	s.mu.Lock()
	c.install(l)
	s.mu.Unlock()
	if got, want := state(s), "changed=new changed:new changed:new "; got != want {
		t.Errorf("the state is %s, want %s", got, want)
	}
}

// Who has looked up a namespace that was emptied meanwhile, and filled again, finds
// it empty: not what happens to have the name of something it had.
func TestListOfEmptiedNamespace(t *testing.T) {
	s, k := testStore(t, "gone")
	sc := k.scope("a")
	snap := s.Snapshot()
	if err := s.Delete(testGVK(), "gone", "a", nil); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"changed", "gone"} {
		if _, err := s.Create(testObject(name, "new")); err != nil {
			t.Fatal(err)
		}
	}
	l := sc.list.Load()
	if !l.current(s.Revision()) {
		l = k.refresh(sc, &s.mu)
	}
	if len(l.items) != 0 || l.exact(snap.Revision()) {
		t.Errorf("the old scope has %d objects, exact %v", len(l.items), l.exact(snap.Revision()))
	}
	if got, want := state(s), "changed=new gone=new changed:new gone:new changed:new gone:new "; got != want {
		t.Errorf("the state is %s, want %s", got, want)
	}
}

// Compaction keeps the deletion of what is listed.
func TestCompactionKeepsDeletions(t *testing.T) {
	s, k := testStore(t, "changed", "gone")
	state(s)
	if err := s.Delete(testGVK(), "gone", "a", nil); err != nil {
		t.Fatal(err)
	}
	compact(t, s, k.scope("a"))
	if got, want := state(s), "changed=old changed:old changed:old "; got != want {
		t.Errorf("the state is %s, want %s", got, want)
	}
}

// compact creates and deletes until a scope has compacted its notes.
func compact(t *testing.T, s *Store, sc *scope) {
	t.Helper()
	replaced := sc.replaced
	for i := 0; sc.replaced == replaced; i++ {
		name := fmt.Sprint("brief", i)
		if _, err := s.Create(testObject(name, "")); err != nil {
			t.Fatal(err)
		}
		if err := s.Delete(testGVK(), name, "a", nil); err != nil || i > 1000 {
			t.Fatalf("after %d rounds: %v", i, err)
		}
	}
}

// What writers note for lists, and namespaces that were emptied, cost no memory in
// the long run.
func TestNotesAreBounded(t *testing.T) {
	s, k := testStore(t, "stays")
	s.List(testGVK(), "")
	for i := range 1000 {
		c := testObject(fmt.Sprint("brief", i), "")
		for _, ns := range []string{"a", fmt.Sprint("ns", i)} {
			c.Namespace = ns
			if _, err := s.Create(c); err != nil {
				t.Fatal(err)
			}
			if err := s.Delete(testGVK(), c.Name, ns, nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	if n := k.scopes.Len(); n != 1 {
		t.Errorf("%d namespaces are kept", n)
	}
	for name, sc := range map[string]*scope{"a": k.scope("a"), "all": &k.all} {
		if n := len(sc.pending); n > 100 {
			t.Errorf("%d changes are noted for %s", n, name)
		}
	}
	if n := k.objects.Len(); n != 1 {
		t.Errorf("%d objects are kept", n)
	}
}
