// SPDX-License-Identifier: Apache-2.0

package file_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/file"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/configstore/memory"
)

// countingStore counts how it is written to.
type countingStore struct {
	*memory.Store
	batches []int
	single  int
}

func (s *countingStore) Apply(mutations ...configstore.Mutation) (uint64, error) {
	s.batches = append(s.batches, len(mutations))
	return s.Store.Apply(mutations...)
}

func (s *countingStore) Create(c configstore.Config) (string, error) {
	s.single++
	return s.Store.Create(c)
}

func (s *countingStore) Update(c configstore.Config) (string, error) {
	s.single++
	return s.Store.Update(c)
}

// All changes found in one scan are one batch, even if a part of it is rejected.
func TestReloadIsOneBatch(t *testing.T) {
	f := newFixture(t, file.Options{})
	store := &countingStore{Store: f.store}
	f.source = file.New(f.dir, store, file.Options{})
	f.write("a.yaml", docs(entry("a", "one"), entry("b", "one"), entry("c", "one")))
	f.reload()
	if fmt.Sprint(store.batches) != "[3]" || store.single != 0 {
		t.Errorf("batches %v and %d single writes, want one batch of 3", store.batches, store.single)
	}
	if _, err := f.store.Create(f.parse(entry("x", "theirs"))); err != nil {
		t.Fatal(err)
	}
	store.batches = nil
	f.write("a.yaml", strings.ReplaceAll(docs(entry("a", "one"), entry("b", "one"), entry("c", "one")),
		"metadata:", "metadata:\n  resourceVersion: '7'\n  generation: 7"))
	f.reload()
	if len(store.batches) != 0 || store.single != 0 {
		t.Errorf("batches %v and %d single writes for nothing, want none", store.batches, store.single)
	}
	f.write("a.yaml", docs(entry("a", "two"), invalid("b"), entry("d", "one"), invalid("e"), entry("x", "ours")))
	f.reload()
	f.wantStore("ns/a=two", "ns/b=one", "ns/d=one", "ns/x=theirs")
	f.wantErrors("a.yaml:24:5: ", "a.yaml:52:5: ", "a.yaml:57:1: ")
	// The update, the create and the deletion, without the invalid object and the object of another
	// writer.
	if fmt.Sprint(store.batches) != "[3]" || store.single != 0 {
		t.Errorf("batches %v and %d single writes, want one batch of 3", store.batches, store.single)
	}
}

// wrapper forwards the methods of ConfigStore, and exposes the wrapped store.
type wrapper struct{ configstore.ConfigStore }

func (w wrapper) Unwrap() configstore.ConfigStore { return w.ConfigStore }

// The batches of a store are found through what wraps it.
func TestReloadOfAWrappedStoreIsOneBatch(t *testing.T) {
	f := newFixture(t, file.Options{})
	store := &countingStore{Store: f.store}
	f.source = file.New(f.dir, wrapper{wrapper{store}}, file.Options{})
	f.write("a.yaml", docs(entry("a", "one"), entry("b", "one")))
	f.reload()
	f.wantStore("ns/a=one", "ns/b=one")
	if fmt.Sprint(store.batches) != "[2]" || store.single != 0 {
		t.Errorf("batches %v and %d single writes, want one batch of 2", store.batches, store.single)
	}
}

// lookupStore counts reads.
type lookupStore struct {
	configstore.ConfigStore
	gets int
}

func (s *lookupStore) Get(kind configstore.GroupVersionKind, name, namespace string) *configstore.Config {
	s.gets++
	return s.ConfigStore.Get(kind, name, namespace)
}

// A changed object is looked up once; unchanged ones are not looked up.
func TestChangeLooksUpOnce(t *testing.T) {
	f := newFixture(t, file.Options{})
	store := &lookupStore{ConfigStore: f.store}
	f.source = file.New(f.dir, store)
	for i, host := range []string{"one", "two", "three"} {
		f.write("a.yaml", docs(entry("a", "one"), entry("b", host), entry("c", "one")))
		store.gets = 0
		f.reload()
		if i > 0 && store.gets != 1 {
			t.Errorf("%d lookups for one change, want 1", store.gets)
		}
	}
	// The source notices an object that others have deleted and created again.
	theirs := *f.store.Get(istio.ServiceEntry, "b", "ns")
	f.must(f.store.Delete(istio.ServiceEntry, "b", "ns", nil))
	theirs.ResourceVersion, theirs.CreationTimestamp = "", theirs.CreationTimestamp.Add(time.Hour)
	if _, err := f.store.Create(theirs); err != nil {
		t.Fatal(err)
	}
	f.write("a.yaml", docs(entry("a", "one"), entry("b", "four"), entry("c", "one")))
	f.reload()
	f.wantStore("ns/a=one", "ns/b=three", "ns/c=one")
}

// plainStore has no batches.
type plainStore struct{ configstore.ConfigStore }

func TestStoreWithoutBatches(t *testing.T) {
	f := newFixture(t, file.Options{})
	f.source = file.New(f.dir, plainStore{f.store}, file.Options{})
	f.write("a.yaml", docs(entry("a", "one"), invalid("b"), entry("c", "one")))
	f.reload()
	f.wantEvents("add ns/a=one", "add ns/c=one")
	f.write("a.yaml", docs(entry("a", "two"), entry("b", "one")))
	f.reload()
	f.wantEvents("update ns/a=two", "add ns/b=one", "delete ns/c=one")
	f.wantErrors()
}

// stubbornStore refuses to write one object.
type stubbornStore struct {
	configstore.ConfigStore
	name string
}

func (s *stubbornStore) Create(c configstore.Config) (string, error) {
	if c.Name == s.name {
		return "", fmt.Errorf("create %s: %w", c.Key().Object(), configstore.ErrReadOnly)
	}
	return s.ConfigStore.Create(c)
}

func (s *stubbornStore) Delete(kind configstore.GroupVersionKind, name, namespace string, version *string) error {
	if name == s.name {
		return fmt.Errorf("delete %s: %w", name, configstore.ErrReadOnly)
	}
	return s.ConfigStore.Delete(kind, name, namespace, version)
}

// What fails for reasons of the store's own is tried again.
func TestRefusedWritesAreRetried(t *testing.T) {
	f := newFixture(t, file.Options{})
	store := &stubbornStore{ConfigStore: f.store, name: "b"}
	f.source = file.New(f.dir, store, file.Options{})
	f.write("a.yaml", docs(entry("a", "one"), entry("b", "one"), entry("c", "one")))
	f.reload()
	f.wantStore("ns/a=one", "ns/c=one")
	f.wantErrors("a.yaml:15:1: document 2, ServiceEntry ns/b: create ServiceEntry ns/b: read-only store")
	store.name = ""
	f.reload()
	f.wantStore("ns/a=one", "ns/b=one", "ns/c=one")
	f.wantErrors()
	store.name = "b"
	f.remove("a.yaml")
	f.reload()
	f.wantStore("ns/b=one")
	f.wantErrors(f.dir + ": delete b: read-only store")
	store.name = ""
	f.reload()
	f.wantStore()
	f.wantErrors()
}

// Ten thousand objects in a thousand files: all are loaded as one batch, and a
// change of one costs one event.
func TestTenThousandObjects(t *testing.T) {
	const n = 10_000
	dir := t.TempDir()
	populate(t, dir, n, func(i int, host string) string {
		return entry(fmt.Sprintf("e-%d", i), fmt.Sprintf("%s-%d", host, i))
	})
	store := memory.Make(istio.Schemas())
	cache := memory.NewController(store)
	var batches []int
	cache.Subscribe([]configstore.GroupVersionKind{istio.ServiceEntry}, func(changes []configstore.Change) {
		batches = append(batches, len(changes))
	})
	source := file.New(dir, store, file.Options{})
	reload := func() {
		t.Helper()
		if err := source.Reload(); err != nil {
			t.Fatal(err)
		}
		cache.Drain()
		if errs := source.Errors(); len(errs) > 0 {
			t.Fatal(errs[0])
		}
	}
	reload()
	if got := len(store.List(istio.ServiceEntry, configstore.NamespaceAll)); got != n {
		t.Fatalf("%d objects, want %d", got, n)
	}
	first := store.Revision()
	name := filepath.Join(dir, "team-07", "file-0507.yaml")
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(strings.Replace(string(text), "svc-5075.", "changed-5075.", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	batches = nil
	reload()
	if len(batches) != 1 || batches[0] != 1 || store.Revision() != first+1 {
		t.Errorf("batches %v and %d revisions after a change of one object, want one of one", batches, store.Revision()-first)
	}
}
