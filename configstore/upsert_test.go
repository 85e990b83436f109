// SPDX-License-Identifier: Apache-2.0

package configstore_test

import (
	"errors"
	"slices"
	"sync"
	"testing"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/configstore/memory"
)

// An object can be stored as it is made, without its kind, and twice.
func TestUpsert(t *testing.T) {
	store := newStore(t, istio.Schemas())
	a := configstore.NewConfig("a", "ns", entry("a.example.com"))
	first, err := configstore.Upsert(store, a.Config())
	if err != nil || first != "1" {
		t.Fatalf("Upsert of a new object = %q, %v, want revision 1", first, err)
	}
	if again, err := configstore.Upsert(store, a.Config()); err != nil || again != first {
		t.Errorf("Upsert of the same = %q, %v, want revision %s and no change", again, err, first)
	}
	a.Spec = entry("b.example.com")
	second, err := configstore.Upsert(store, a.Config())
	if err != nil || second != "2" {
		t.Errorf("Upsert of a change = %q, %v, want revision 2", second, err)
	}
	a.ResourceVersion = first
	if _, err := configstore.Upsert(store, a.Config()); !errors.Is(err, configstore.ErrConflict) {
		t.Errorf("Upsert with an old version = %v, want a conflict", err)
	}
	absent := configstore.NewConfig("absent", "ns", entry("c.example.com"))
	absent.ResourceVersion = first
	if _, err := configstore.Upsert(store, absent.Config()); !errors.Is(err, configstore.ErrNotFound) {
		t.Errorf("Upsert of what has to exist = %v, want not found", err)
	}
	invalid := configstore.NewConfig("bad", "ns", &networking.ServiceEntry{})
	if _, err := configstore.Upsert(store, invalid.Config()); !errors.Is(err, configstore.ErrInvalid) {
		t.Errorf("Upsert of an invalid object = %v, want invalid", err)
	}
}

// racing has objects come and go between the look and the write of an Upsert.
type racing struct {
	configstore.ConfigStore
	before func(verb string)
}

func (r racing) Create(c configstore.Config) (string, error) {
	r.before("create")
	return r.ConfigStore.Create(c)
}

func (r racing) Update(c configstore.Config) (string, error) {
	r.before("update")
	return r.ConfigStore.Update(c)
}

func TestUpsertWhileOthersWrite(t *testing.T) {
	store := newStore(t, istio.Schemas())
	mine := configstore.NewConfig("a", "ns", entry("mine.example.com")).Config()
	var verbs []string
	r := racing{store, func(verb string) {
		verbs = append(verbs, verb)
		switch len(verbs) {
		case 1: // created by another writer
			if _, err := store.Create(configstore.NewConfig("a", "ns", entry("other.example.com")).Config()); err != nil {
				t.Error(err)
			}
		case 2: // and deleted
			if err := store.Delete(istio.ServiceEntry, "a", "ns", nil); err != nil {
				t.Error(err)
			}
		}
	}}
	if _, err := configstore.Upsert(r, mine); err != nil {
		t.Fatal(err)
	}
	if want := []string{"create", "update", "create"}; !slices.Equal(verbs, want) {
		t.Errorf("writes %v, want %v", verbs, want)
	}
	if got := store.Get(istio.ServiceEntry, "a", "ns"); got == nil || got.Spec != mine.Spec {
		t.Errorf("stored is %v, want what was written", got)
	}
}

func TestConcurrentUpserts(t *testing.T) {
	store := newStore(t, istio.Schemas())
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if _, err := configstore.Upsert(store, configstore.NewConfig("a", "ns", entry("a.example.com")).Config()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if got := store.Revision(); got != 1 {
		t.Errorf("8 equal Upserts made %d changes, want 1", got)
	}
}

// A batch of typed mutations of several kinds, and typed reads of a snapshot.
func TestTypedBatchAndSnapshot(t *testing.T) {
	store := newStore(t, istio.Schemas())
	entries := configstore.Typed[*networking.ServiceEntry](store)
	workloads := configstore.Typed[*networking.WorkloadEntry](store)
	a := configstore.NewConfig("a", "ns", entry("a.example.com"))
	a.Labels = map[string]string{"app": "a"}
	b := configstore.NewConfig("b", "ns", entry("b.example.com"))
	vm := configstore.NewConfig("vm", "ns", &networking.WorkloadEntry{Address: "10.0.0.1"})
	revision, err := store.Apply(
		entries.Mutation(configstore.OpCreate, a),
		entries.Mutation(configstore.OpUpsert, b),
		workloads.Mutation(configstore.OpUpsert, vm),
		configstore.Mutation{Op: configstore.OpUpsert, Config: vm.Config()}, // equal: no change
		entries.Mutation(configstore.OpDelete, configstore.NewConfig("b", "ns", entry())),
	)
	if err != nil || revision != 4 {
		t.Fatalf("Apply = %d, %v, want revision 4", revision, err)
	}
	snapshot := store.Snapshot()
	if _, err := entries.Upsert(b); err != nil {
		t.Fatal(err)
	}
	if list := snapshot.List(istio.ServiceEntry, "ns"); len(list) != 1 || list[0].Name != "a" {
		t.Errorf("the snapshot has %v, want a alone", list)
	}
	for ns, want := range map[string]int{"ns": 1, "": 1, "other": 0} {
		if got := slices.Collect(entries.Select(ns, map[string]string{"app": "a"})); len(got) != want {
			t.Errorf("Select(%q, app=a) = %v, want %d objects", ns, got, want)
		}
	}
	if got, ok := configstore.Typed[*networking.WorkloadEntry](store, istio.WorkloadEntry).Get("vm", "ns"); !ok || got.Spec.Address != "10.0.0.1" {
		t.Errorf("Get(vm) = %v, %t", got, ok)
	}
}

// Without a kind, an object whose type belongs to no kind, or to several, is rejected.
func TestWritesWithoutKind(t *testing.T) {
	store := memory.Make(istio.Schemas())
	c := configstore.Config{Meta: configstore.Meta{Name: "a", Namespace: "ns"}}
	if _, err := store.Create(c); !errors.Is(err, configstore.ErrUnknownKind) {
		t.Errorf("Create without a kind and a spec = %v, want unknown kind", err)
	}
}
