// SPDX-License-Identifier: Apache-2.0

package file_test

import (
	"errors"
	"testing"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/file"
	"github.com/pilotkit/pilotkit/configstore/istio"
)

func TestFirstPathWins(t *testing.T) {
	f := newFixture(t, file.Options{})
	f.write("m.yaml", docs(entry("a", "m"), entry("a", "m-again")))
	f.write("z/z.yaml", entry("a", "z"))
	f.reload()
	f.wantEvents("add ns/a=m")
	f.wantErrors(
		"m.yaml:15:1: document 2, ServiceEntry ns/a: object is defined elsewhere: "+f.path("m.yaml")[len(f.dir)+1:]+":1, document 1",
		"z/z.yaml:1:1: document 1, ServiceEntry ns/a: object is defined elsewhere: m.yaml:1",
	)
	if e := f.source.Errors()[0]; !errors.Is(e, file.ErrDuplicate) {
		t.Errorf("%v is no ErrDuplicate", e)
	}
	// "a-b/" sorts before "a/" because "-" is less than "/".
	f.write("a/a.yaml", entry("a", "a"))
	f.write("a-b/a.yaml", entry("a", "a-b"))
	f.reload()
	f.wantEvents("update ns/a=a-b")
	for _, step := range []struct{ remove, event string }{
		{"z", ""},
		{"a-b", "update ns/a=a"},
		{"a", "update ns/a=m"},
		{"m.yaml", "delete ns/a=m"},
	} {
		f.remove(step.remove)
		f.reload()
		if step.event == "" {
			f.wantEvents()
		} else {
			f.wantEvents(step.event)
		}
	}
	f.wantErrors()
}

// An object that moves to another file is never deleted, regardless of the order of the writes and
// of scans in between.
func TestMovedObjectIsNotDeleted(t *testing.T) {
	for _, tt := range []struct{ name, from, to string }{
		{"forward", "a.yaml", "b.yaml"},
		{"backward", "b.yaml", "a.yaml"},
	} {
		t.Run(tt.name+", at once", func(t *testing.T) {
			f := newFixture(t, file.Options{})
			f.write(tt.from, docs(entry("x", "one"), entry("stays", "one")))
			f.reload()
			before := f.store.Get(istio.ServiceEntry, "x", "ns")
			f.write(tt.from, entry("stays", "one"))
			f.write(tt.to, entry("x", "one"))
			f.reload()
			f.wantEvents()
			if f.store.Get(istio.ServiceEntry, "x", "ns") != before {
				t.Error("object was replaced, want it untouched")
			}
			f.write(tt.from, docs(entry("x", "two"), entry("stays", "one")))
			f.write(tt.to, "# nothing any more\n")
			f.reload()
			f.wantEvents("update ns/x=two")
			f.wantErrors()
		})
		t.Run(tt.name+", copied first", func(t *testing.T) {
			f := newFixture(t, file.Options{})
			f.write(tt.from, docs(entry("x", "one"), entry("stays", "one")))
			f.reload()
			f.write(tt.to, entry("x", "one"))
			f.reload()
			f.wantEvents()
			if len(f.source.Errors()) != 1 {
				t.Errorf("errors while the object is in both files: %v, want one", f.errors())
			}
			f.write(tt.from, entry("stays", "one"))
			f.reload()
			f.wantEvents()
			f.wantErrors()
		})
		t.Run(tt.name+", renamed file", func(t *testing.T) {
			f := newFixture(t, file.Options{})
			f.write(tt.from, entry("x", "one"))
			f.reload()
			f.rename(tt.from, tt.to)
			f.reload()
			f.wantEvents()
			f.wantErrors()
		})
	}
}

// A document that is bad where the object has moved to keeps it as well.
func TestMovedToBadDocument(t *testing.T) {
	f := newFixture(t, file.Options{})
	f.write("b.yaml", entry("x", "one"))
	f.reload()
	f.remove("b.yaml")
	f.write("a.yaml", unknownField("x"))
	f.reload()
	f.wantEvents()
	f.wantStore("ns/x=one")
	f.write("a.yaml", entry("x", "two"))
	f.reload()
	f.wantEvents("update ns/x=two")
	f.write("a.yaml", unknownField("x"))
	f.reload()
	f.remove("a.yaml")
	f.reload()
	f.wantEvents("delete ns/x=two")
}

// An invalid object must not hide a valid one of the same key elsewhere, unless
// it was good before.
func TestInvalidDuplicate(t *testing.T) {
	f := newFixture(t, file.Options{})
	f.write("a.yaml", invalid("x"))
	f.write("b.yaml", entry("x", "b"))
	f.reload()
	f.wantEvents("add ns/x=b")
	f.wantErrors("a.yaml:10:5: document 1, ServiceEntry ns/x: ")
	f.write("a.yaml", entry("x", "a"))
	f.reload()
	f.wantEvents("update ns/x=a")
	f.write("a.yaml", invalid("x"))
	f.reload()
	f.wantEvents()
	f.wantStore("ns/x=a")
	f.remove("b.yaml")
	f.reload()
	f.wantEvents()
	f.remove("a.yaml")
	f.reload()
	f.wantEvents("delete ns/x=a")
}

func TestObjectsOfOtherWritersAreLeftAlone(t *testing.T) {
	f := newFixture(t, file.Options{})
	theirs := configstore.Config{
		Meta: configstore.Meta{GroupVersionKind: istio.ServiceEntry, Name: "x", Namespace: "ns"},
		Spec: f.parse(entry("x", "theirs")).Spec,
	}
	if _, err := f.store.Create(theirs); err != nil {
		t.Fatal(err)
	}
	f.write("a.yaml", docs(entry("x", "ours"), entry("z", "ours")))
	f.reload()
	f.wantStore("ns/x=theirs", "ns/z=ours")
	f.wantErrors("a.yaml:1:1: document 1, ServiceEntry ns/x: write ServiceEntry ns/x: object in the store belongs to another writer")
	if !errors.Is(f.source.Errors()[0], file.ErrNotOwned) {
		t.Error("error is no ErrNotOwned")
	}
	f.remove("a.yaml")
	f.reload()
	f.wantStore("ns/x=theirs")
	f.wantErrors()
	f.write("a.yaml", entry("x", "ours"))
	f.reload()
	f.wantStore("ns/x=theirs")
	f.must(f.store.Delete(istio.ServiceEntry, "x", "ns", nil))
	f.reload()
	f.wantStore("ns/x=ours")
	f.wantErrors()

	// After another writer has deleted and created it again, the object belongs to that writer.
	f.must(f.store.Delete(istio.ServiceEntry, "x", "ns", nil))
	if _, err := f.store.Create(theirs); err != nil {
		t.Fatal(err)
	}
	f.write("a.yaml", entry("x", "ours again"))
	f.reload()
	f.wantStore("ns/x=theirs")
	f.remove("a.yaml")
	f.reload()
	f.wantStore("ns/x=theirs")
	f.wantErrors()
}

func TestStatusOfOthersIsKept(t *testing.T) {
	f := newFixture(t, file.Options{})
	f.write("a.yaml", entry("x", "one"))
	f.reload()
	stored := *f.store.Get(istio.ServiceEntry, "x", "ns")
	stored.Status = f.parse(entry("x", "one") + "status: {addresses: [{value: 240.240.0.1}]}\n").Status
	if _, err := f.store.UpdateStatus(stored); err != nil {
		t.Fatal(err)
	}
	f.write("a.yaml", entry("x", "two"))
	f.reload()
	if got := f.store.Get(istio.ServiceEntry, "x", "ns"); !configstore.EqualMessage(got.Status, stored.Status) {
		t.Errorf("status = %v, want %v", got.Status, stored.Status)
	}
	f.wantStore("ns/x=two")

	// A status from the file is removed when the file does not set it any more.
	f.write("a.yaml", entry("x", "two")+"status: {addresses: [{value: 240.240.0.2}]}\n")
	f.reload()
	f.write("a.yaml", entry("x", "two"))
	f.reload()
	if got := f.store.Get(istio.ServiceEntry, "x", "ns").Status; got != nil {
		t.Errorf("status = %v, want none", got)
	}
}

// busyStore has another writer write to an object just before it is updated.
type busyStore struct {
	configstore.ConfigStore
	before func()
}

func (s *busyStore) Update(c configstore.Config) (string, error) {
	if before := s.before; before != nil {
		s.before = nil
		before()
	}
	return s.ConfigStore.Update(c)
}

// A status that is written while the source updates the object is kept too.
func TestStatusWrittenInBetweenIsKept(t *testing.T) {
	f := newFixture(t, file.Options{})
	store := &busyStore{ConfigStore: f.store}
	f.source = file.New(f.dir, store, file.Options{})
	f.write("a.yaml", entry("x", "one"))
	f.reload()
	status := f.parse(entry("x", "one") + "status: {addresses: [{value: 240.240.0.1}]}\n").Status
	store.before = func() {
		stored := *f.store.Get(istio.ServiceEntry, "x", "ns")
		stored.Status = status
		if _, err := f.store.UpdateStatus(stored); err != nil {
			t.Error(err)
		}
	}
	f.write("a.yaml", entry("x", "two"))
	f.reload()
	f.wantStore("ns/x=two")
	if got := f.store.Get(istio.ServiceEntry, "x", "ns").Status; !configstore.EqualMessage(got, status) {
		t.Errorf("status = %v, want %v", got, status)
	}
	f.wantErrors()
}

// An object changed by others is written when its document changes, and created again if it was
// deleted.
func TestObjectChangedByOthers(t *testing.T) {
	f := newFixture(t, file.Options{})
	f.write("a.yaml", docs(entry("x", "one"), entry("z", "one")))
	f.reload()
	changed := f.store.Get(istio.ServiceEntry, "x", "ns").Clone()
	changed.Spec = f.parse(entry("x", "theirs")).Spec
	if _, err := f.store.Update(changed); err != nil {
		t.Fatal(err)
	}
	f.must(f.store.Delete(istio.ServiceEntry, "z", "ns", nil))
	f.reload()
	f.wantStore("ns/x=theirs")
	f.write("a.yaml", docs(entry("x", "two"), entry("z", "two")))
	f.reload()
	f.wantStore("ns/x=two", "ns/z=two")
	f.wantErrors()
}
