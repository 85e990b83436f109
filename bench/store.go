// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"testing"

	"github.com/cilium/statedb"
	"github.com/cilium/statedb/index"
	"github.com/hashicorp/go-memdb"
	networking "istio.io/api/networking/v1alpha3"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/configstore/memory"
)

// perNamespace is the number of objects of a namespace.
const perNamespace = 10

// object is an object as the peers store it. It shares the spec of a config.
type object struct {
	metav1.ObjectMeta
	metav1.TypeMeta

	Spec *networking.ServiceEntry
}

// DeepCopyObject implements runtime.Object.
func (o *object) DeepCopyObject() runtime.Object {
	out := *o
	return &out
}

// GetObjectKind implements runtime.Object.
func (*object) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

// TableHeader implements statedb.TableWritable.
func (*object) TableHeader() []string { return []string{"name"} }

// TableRow implements statedb.TableWritable.
func (o *object) TableRow() []string { return []string{o.Name} }

// identity is the identity of an object, made before anything is measured.
type identity struct{ namespace, name, key string }

var identities = func() (out []identity) {
	for i := range 100_000 {
		namespace, name := fmt.Sprint("ns-", i/perNamespace), fmt.Sprint("entry-", i)
		out = append(out, identity{namespace, name, namespace + "/" + name})
	}
	return out
}()

func namespaceOf(i int) string { return identities[i].namespace }
func nameOf(i int) string      { return identities[i].name }
func keyOf(i int) string       { return identities[i].key }

// configOf returns an object in its nth version.
func configOf(i, version int) configstore.Config {
	return configstore.Config{
		Meta: configstore.Meta{GroupVersionKind: istio.ServiceEntry, Namespace: namespaceOf(i), Name: nameOf(i)},
		Spec: &networking.ServiceEntry{
			Hosts: []string{fmt.Sprintf("%d.example.com", i)}, Resolution: networking.ServiceEntry_STATIC,
			Ports:     []*networking.ServicePort{{Number: 80, Name: "http", Protocol: "HTTP"}},
			Endpoints: []*networking.WorkloadEntry{{Address: fmt.Sprintf("10.0.%d.%d", version/250%250, version%250+1)}},
		},
	}
}

func objectOf(i, version int) *object {
	c := configOf(i, version)
	return &object{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: c.Name}, Spec: c.Spec.(*networking.ServiceEntry)} //nolint:forcetypeassert // see configOf
}

// store is a store of objects.
type store struct {
	name          string
	get           func(i int) bool
	update        func(i, version int)
	listNamespace func(i int) int
	listAll       func() int
}

// stores returns the stores with n objects each. They are filled when they are first used.
func stores(n int) []*store {
	return []*store{pilotkitStore(n), indexerStore(n), memdbStore(n), statedbStore(n)}
}

func pilotkitStore(n int) *store {
	s := memory.Make(istio.Schemas())
	for i := range n {
		must(s.Create(configOf(i, 0)))
	}
	return &store{
		name:          "pilotkit",
		get:           func(i int) bool { return s.Get(istio.ServiceEntry, nameOf(i), namespaceOf(i)) != nil },
		update:        func(i, version int) { must(s.Update(configOf(i, version))) },
		listNamespace: func(i int) int { return len(s.List(istio.ServiceEntry, namespaceOf(i))) },
		listAll:       func() int { return len(s.List(istio.ServiceEntry, configstore.NamespaceAll)) },
	}
}

func indexerStore(n int) *store {
	s := newIndexer()
	for i := range n {
		check(s.Add(objectOf(i, 0)))
	}
	return &store{
		name: "client-go Indexer",
		get: func(i int) bool {
			_, ok, err := s.GetByKey(keyOf(i))
			return ok && err == nil
		},
		update:        func(i, version int) { check(s.Update(objectOf(i, version))) },
		listNamespace: func(i int) int { return len(must(s.ByIndex(cache.NamespaceIndex, namespaceOf(i)))) },
		listAll:       func() int { return len(s.List()) },
	}
}

func newIndexer() cache.Indexer {
	return cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: func(o any) ([]string, error) {
		m, err := meta.Accessor(o)
		if err != nil {
			return nil, err
		}
		return []string{m.GetNamespace()}, nil
	}})
}

func memdbStore(n int) *store {
	s := newMemdb(n)
	list := func(index string, args ...any) (count int) {
		for it := must(s.Txn(false).Get("objects", index, args...)); it.Next() != nil; {
			count++
		}
		return count
	}
	return &store{
		name:          "go-memdb",
		get:           func(i int) bool { return must(s.Txn(false).First("objects", "id", namespaceOf(i), nameOf(i))) != nil },
		update:        func(i, version int) { putMemdb(s, objectOf(i, version)) },
		listNamespace: func(i int) int { return list("namespace", namespaceOf(i)) },
		listAll:       func() int { return list("id") },
	}
}

func newMemdb(n int) *memdb.MemDB {
	field := func(name string) memdb.Indexer { return &memdb.StringFieldIndex{Field: name} }
	s := must(memdb.NewMemDB(&memdb.DBSchema{Tables: map[string]*memdb.TableSchema{"objects": {
		Name: "objects", Indexes: map[string]*memdb.IndexSchema{
			"id":        {Name: "id", Unique: true, Indexer: &memdb.CompoundIndex{Indexes: []memdb.Indexer{field("Namespace"), field("Name")}}},
			"namespace": {Name: "namespace", Indexer: field("Namespace")},
		},
	}}}))
	for i := range n {
		putMemdb(s, objectOf(i, 0))
	}
	return s
}

func putMemdb(s *memdb.MemDB, o *object) {
	txn := s.Txn(true)
	check(txn.Insert("objects", o))
	txn.Commit()
}

// The indexes of the table of statedb.
var (
	byKey = statedb.Index[*object, string]{
		Name: "key", Unique: true, FromKey: index.String,
		FromObject: func(o *object) index.KeySet { return index.NewKeySet(index.String(o.Namespace + "/" + o.Name)) },
	}
	byNamespace = statedb.Index[*object, string]{
		Name: "namespace", FromKey: index.String,
		FromObject: func(o *object) index.KeySet { return index.NewKeySet(index.String(o.Namespace)) },
	}
)

func statedbStore(n int) *store {
	db, table := newStatedb(n)
	count := func(objects iter.Seq2[*object, statedb.Revision]) (n int) {
		for range objects {
			n++
		}
		return n
	}
	return &store{
		name: "statedb",
		get: func(i int) bool {
			_, _, ok := table.Get(db.ReadTxn(), byKey.Query(keyOf(i)))
			return ok
		},
		update:        func(i, version int) { putStatedb(db, table, objectOf(i, version)) },
		listNamespace: func(i int) int { return count(table.List(db.ReadTxn(), byNamespace.Query(namespaceOf(i)))) },
		listAll:       func() int { return count(table.All(db.ReadTxn())) },
	}
}

func newStatedb(n int) (*statedb.DB, statedb.RWTable[*object]) {
	db := statedb.New()
	table := must(statedb.NewTable(db, "objects", byKey, byNamespace))
	for i := range n {
		putStatedb(db, table, objectOf(i, 0))
	}
	return db, table
}

func putStatedb(db *statedb.DB, table statedb.RWTable[*object], o *object) {
	txn := db.WriteTxn(table)
	_, _, err := table.Insert(txn, o)
	check(err)
	txn.Commit()
}

func storeRows() []row {
	sizes := []int{1_000, 10_000, 100_000}
	each := func(name, about string, sizes []int, work func(s *store, n, i int) bool) row {
		return row{name: "Store: " + name, sizes: sizes, about: about, of: func(n int) (out []subject) {
			for _, s := range stores(n) {
				out = append(out, subject{s.name, func(b *testing.B) {
					b.ReportAllocs()
					random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same objects for each subject
					for b.Loop() {
						if !work(s, n, random.IntN(n)) {
							b.Fatal("an object is missing")
						}
					}
				}})
			}
			return out
		}}
	}
	version := 0
	return []row{
		each("read one object", "By namespace and name, on one goroutine. The Indexer is a map with a lock, where readers wait for writers. Readers of\npilotkit take no lock, and see all changes of a batch together.", sizes, func(s *store, _, i int) bool { return s.get(i) }),
		each("update one object", "The time includes making the object. pilotkit validates it, compares it with its former state, and keeps snapshots;\nthe Indexer does none of these, go-memdb and statedb only keep snapshots.",
			sizes, func(s *store, _, i int) bool {
				version++
				s.update(i, version)
				return true
			}),
		each("list a namespace of ten objects", "", sizes, func(s *store, _, i int) bool { return s.listNamespace(i) == perNamespace }),
		each("list everything after a change", "pilotkit returns a sorted slice, the Indexer a slice; the others iterate.",
			sizes[:2], func(s *store, n, i int) bool {
				version++
				s.update(i, version)
				return s.listAll() == n
			}),
	}
}

func must[T any](v T, err error) T {
	check(err)
	return v
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
