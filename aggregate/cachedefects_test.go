// SPDX-License-Identifier: Apache-2.0

package aggregate_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/structpb"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/aggregate"
	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/configstore/memory"
	"github.com/pilotkit/pilotkit/configstore/storetest"
)

// What follows is named after defects of the config aggregate of Istio 1.30.

func TestNamespacedListHasNoShadowedDuplicates(t *testing.T) {
	w := newWorld(t, memory.Options{})
	for i, m := range w.members {
		_, err := m.Create(object("B", "ns-0", "o-0", fmt.Sprint(i)))
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, namespace := range []string{"ns-0", configstore.NamespaceAll} {
		if got := keys(w.cache.List(kind("B"), namespace)); len(got) != 1 || !strings.HasSuffix(got[0], "=0") {
			t.Errorf("List(B, %q) = %v, want the object of the first member alone", namespace, got)
		}
	}
}

func TestEventsOfShadowedObjectsAreHidden(t *testing.T) {
	w := newWorld(t, memory.Options{})
	var r storetest.Recorder
	w.cache.RegisterEventHandler(kind("B"), r.Handle)
	do := func(member int, f func(m *memory.Controller) error) {
		t.Helper()
		if err := f(w.members[member]); err != nil {
			t.Fatal(err)
		}
		w.cache.Drain()
	}
	create := func(v string) func(*memory.Controller) error {
		return func(m *memory.Controller) error { _, err := m.Create(object("B", "ns", "x", v)); return err }
	}
	update := func(v string) func(*memory.Controller) error {
		return func(m *memory.Controller) error { _, err := m.Update(object("B", "ns", "x", v)); return err }
	}
	remove := func(m *memory.Controller) error { return m.Delete(kind("B"), "x", "ns", nil) }
	expect := func(old, curr string, want ...string) {
		t.Helper()
		calls := r.Calls()
		r.Expect(t, want...)
		if len(calls) == 1 && (value(&calls[0].Curr) != curr || calls[0].Old.Spec != nil && value(&calls[0].Old) != old) {
			t.Errorf("event from %s to %s, want from %s to %s", value(&calls[0].Old), value(&calls[0].Curr), old, curr)
		}
	}

	do(1, create("one"))
	expect("", "one", "add B ns/x")
	do(2, create("two")) // shadowed
	expect("", "")
	do(2, update("two again"))
	expect("", "")
	do(0, create("zero")) // takes over
	expect("one", "zero", "update B ns/x")
	do(1, update("one again"))
	expect("", "")
	do(1, remove)
	expect("", "")
	do(0, remove) // falls back
	expect("zero", "two again", "update B ns/x")
	do(0, create("zero"))
	expect("two again", "zero", "update B ns/x")
	do(2, remove)
	expect("", "")
	do(0, remove)
	expect("", "zero", "delete B ns/x")
}

func TestReadOnlyWritesAreRefused(t *testing.T) {
	w := newWorld(t, memory.Options{})
	if _, err := w.cache.Create(object("A", "ns", "x", "")); err == nil || err.Error() != "create A ns/x: read-only store" {
		t.Errorf("Create = %v", err)
	}
	cache := aggregate.MakeCache(memory.NewController(memory.Make(istio.Schemas())))
	typed := configstore.Config{Meta: configstore.Meta{Name: "x", Namespace: "ns"}, Spec: &networking.Sidecar{}}
	if _, err := cache.Update(typed); err == nil || err.Error() != "update Sidecar ns/x: read-only store" {
		t.Errorf("Update without a kind = %v", err)
	}
}

// A member may have revisions that its events do not have.
type silent struct{ *memory.Controller }

func (s silent) Subscribe(
	kinds []configstore.GroupVersionKind, handler configstore.BatchHandler,
) (objects []*configstore.Config, cancel func()) {
	return s.Controller.Subscribe(kinds, func(changes []configstore.Change) {
		for i := range changes {
			changes[i].Revision = 0
		}
		handler(changes)
	})
}

func TestEventsWithoutRevisionsAreNotLost(t *testing.T) {
	m := memory.NewController(memory.Make(schemas("A")))
	c := aggregate.MakeCache(silent{m})
	var r storetest.Recorder
	c.RegisterEventHandler(kind("A"), r.Handle)
	for _, name := range []string{"x", "y"} {
		if _, err := m.Create(object("A", "ns", name, "1")); err != nil {
			t.Fatal(err)
		}
		c.Drain()
	}
	r.Expect(t, "add A ns/x", "add A ns/y")
}

// They are delivered by Run alone, though nothing is read.
func TestEventsWithoutRevisionsAreDelivered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := memory.NewController(memory.Make(schemas("A")))
		c := aggregate.MakeCache(silent{m})
		var r storetest.Recorder
		c.RegisterEventHandler(kind("A"), r.Handle)
		stop, ended := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(ended)
			c.Run(stop)
		}()
		synctest.Wait()
		create(t, m, object("A", "ns", "x", "1"))
		synctest.Wait()
		r.Expect(t, "add A ns/x")
		close(stop)
		<-ended
	})
}

// A cache that does not number its events only says that there is something, so
// that its history has to do.
func TestEventsWithoutRevisionsBeyondTheHistory(t *testing.T) {
	const changes = 20
	m := memory.NewController(memory.Make(schemas("A"), memory.Options{HistoryLimit: 4}))
	c := aggregate.MakeCache(silent{m})
	var r storetest.Recorder
	c.RegisterEventHandler(kind("A"), r.Handle)
	for i := range changes {
		if _, err := m.Create(object("A", "ns", fmt.Sprint("x", i), "1")); err != nil {
			t.Fatal(err)
		}
	}
	c.Drain()
	if got := len(r.Calls()); got != changes {
		t.Errorf("%d events, want %d", got, changes)
	}
	if got := len(c.List(kind("A"), "ns")); got != changes {
		t.Errorf("%d objects, want %d", got, changes)
	}
}

// Flush waits for the events of a cache whose history does not hold them.
func TestFlushBeyondTheHistory(t *testing.T) {
	const changes = 200
	m := memory.NewController(memory.Make(schemas("A"), memory.Options{HistoryLimit: 4}))
	c := aggregate.MakeCache(m)
	var r storetest.Recorder
	c.RegisterEventHandler(kind("A"), r.Handle)
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		c.Run(stop)
	}()
	var mutations []configstore.Mutation
	for i := range changes {
		mutations = append(mutations, configstore.Mutation{Op: configstore.OpCreate, Config: object("A", "ns", fmt.Sprint("x", i), "1")})
	}
	if _, err := m.Apply(mutations...); err != nil {
		t.Fatal(err)
	}
	if err := c.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := len(r.Calls()); got != changes {
		t.Errorf("%d events when Flush returned, want %d", got, changes)
	}
	close(stop)
	<-ended
}

func TestAggregateOfAggregates(t *testing.T) {
	one, two := memory.NewController(memory.Make(schemas("A"))), memory.NewController(memory.Make(schemas("A", "B")))
	c := aggregate.MakeCache(aggregate.MakeCache(one), aggregate.MakeCache(two))
	var r storetest.Recorder
	c.RegisterEventHandler(kind("A"), r.Handle)
	for i, m := range []*memory.Controller{two, one} {
		if _, err := m.Create(object("A", "ns", "x", fmt.Sprint(i))); err != nil {
			t.Fatal(err)
		}
		c.Drain()
	}
	r.Expect(t, "add A ns/x", "update A ns/x")
	if got := value(c.Get(kind("A"), "x", "ns")); got != "1" {
		t.Errorf("Get = %s, want the object of the first aggregate", got)
	}
	if !c.Schemas().Has(kind("B")) {
		t.Error("a kind of the second aggregate is missing")
	}
}

// The first schema of a kind counts; objects of a cache that has another
// canonical version are handed out under that of the first.
func TestCanonicalVersionsDiffer(t *testing.T) {
	beta := kind("A")
	beta.Version = "v1beta1"
	old := configstore.NewSchemasBuilder().
		MustAdd(configstore.Schema{GroupVersionKind: beta, Aliases: []string{"v1"}, Spec: &structpb.Struct{}}).Build()
	one, two := memory.NewController(memory.Make(schemas("A"))), memory.NewController(memory.Make(old))
	c := aggregate.MakeCache(one, two)
	var r storetest.Recorder
	c.RegisterEventHandler(beta, r.Handle)
	if _, err := two.Create(object("A", "ns", "x", "1")); err != nil {
		t.Fatal(err)
	}
	for _, k := range []configstore.GroupVersionKind{kind("A"), beta} {
		if got := c.Get(k, "x", "ns"); got == nil || got.GroupVersionKind != kind("A") {
			t.Errorf("Get(%s) = %v, want the object as %s", k, got, kind("A"))
		}
	}
	c.Drain()
	if calls := r.Take(); len(calls) != 1 || calls[0].Curr.GroupVersionKind != kind("A") {
		t.Errorf("events %v, want one for %s", calls, kind("A"))
	}
}

// busy is a member in which much happens while it is being listed.
type busy struct {
	*memory.Controller
	// listing is called by the next List before it reads, listed afterwards.
	listing, listed func()
}

func (b *busy) List(k configstore.GroupVersionKind, namespace string) []*configstore.Config {
	if f := b.listing; f != nil {
		b.listing = nil
		f()
	}
	list := b.Controller.List(k, namespace)
	if f := b.listed; f != nil {
		b.listed = nil
		f()
	}
	return list
}

func TestChangesDuringTheFirstListAreNotLost(t *testing.T) {
	m := memory.NewController(memory.Make(schemas("A", "B")))
	do := func(_ string, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"changed", "gone", "kept"} {
		do(m.Create(object("A", "ns", name, "1")))
	}
	c := aggregate.MakeCache(&busy{Controller: m, listed: func() {
		do(m.Update(object("A", "ns", "changed", "2")))
		do("", m.Delete(kind("A"), "gone", "ns", nil))
		do(m.Create(object("A", "ns", "new", "2")))
		do(m.Create(object("B", "ns", "new", "2")))
		do(m.Update(object("B", "ns", "new", "3")))
	}})
	for kindName, want := range map[string][]string{
		"A": {"A/ns/changed=2", "A/ns/kept=1", "A/ns/new=2"}, "B": {"B/ns/new=3"},
	} {
		if got := keys(c.List(kind(kindName), configstore.NamespaceAll)); !slices.Equal(got, want) {
			t.Errorf("List(%s) = %v, want %v", kindName, got, want)
		}
	}
	var r storetest.Recorder
	c.RegisterEventHandler(kind("A"), r.Handle)
	c.Drain()
	r.Expect(t, "add A ns/changed", "add A ns/kept", "add A ns/new")
}

// A cache that has to be listed again is never seen to go back.
func TestListingAgainDoesNotGoBack(t *testing.T) {
	const history = 4
	m := &busy{Controller: memory.NewController(memory.Make(schemas("A"), memory.Options{HistoryLimit: history}))}
	c := aggregate.MakeCache(m)
	write := func(v string) {
		t.Helper()
		if _, err := m.Update(object("A", "ns", "x", v)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := m.Create(object("A", "ns", "x", "0")); err != nil {
		t.Fatal(err)
	}
	for i := range history {
		write(fmt.Sprint(i + 1))
	}
	m.listing = func() { write("5"); write("6") }
	m.listed = func() { write("7") }
	if got := value(c.Get(kind("A"), "x", "ns")); got != "7" {
		t.Errorf("Get = %s, want 7", got)
	}
	c.Drain()
	if got := value(c.Get(kind("A"), "x", "ns")); got != "7" {
		t.Errorf("Get = %s after Drain, want 7", got)
	}
}

// changedBeyondTheHistory returns a cache whose first member remembers four changes, and has changed
// fifty times since handlers were registered.
func changedBeyondTheHistory(t *testing.T) (c *aggregate.Cache, events *[]string, every []string) {
	t.Helper()
	const history, changes = 4, 50
	first := memory.NewController(memory.Make(schemas("A"), memory.Options{HistoryLimit: history}))
	second, third := memory.NewController(memory.Make(schemas("A"))), memory.NewController(memory.Make(schemas("A")))
	do := func(_ string, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	do(second.Create(object("A", "ns", "x0", "hidden")))
	do(third.Create(object("A", "ns", "x0", "hidden")))
	do(third.Create(object("A", "ns", "y", "hidden")))
	do(first.Create(object("A", "ns", "gone", "1")))
	c, events = aggregate.MakeCache(first, second, plain{third}), &[]string{}
	c.RegisterEventHandler(kind("A"), func(_, curr configstore.Config, event configstore.Event) {
		*events = append(*events, event.String()+" "+curr.Name+"="+value(&curr))
	})
	c.Drain()
	*events = nil
	do("", first.Delete(kind("A"), "gone", "ns", nil))
	every = []string{"delete gone=1"}
	for i := range changes {
		name, v, event, write := fmt.Sprint("x", i%10), fmt.Sprint(i), "update", first.Update
		if i < 10 {
			write = first.Create
			if i > 0 { // the second cache has x0
				event = "add"
			}
		}
		do(write(object("A", "ns", name, v)))
		every = append(every, event+" "+name+"="+v)
	}
	return c, events, every
}

// As long as nothing is read, handlers get every change, in its order, whatever
// the history holds.
func TestEventsBeyondTheHistory(t *testing.T) {
	c, events, every := changedBeyondTheHistory(t)
	c.Drain()
	if diff := cmp.Diff(every, *events); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// A read is as fresh as the cache, also when its history does not go back to what
// was read before. Handlers then get the difference, in the order of the keys.
func TestReadsBeyondTheHistory(t *testing.T) {
	c, events, _ := changedBeyondTheHistory(t)
	want := []string{
		"A/ns/x0=40", "A/ns/x1=41", "A/ns/x2=42", "A/ns/x3=43", "A/ns/x4=44",
		"A/ns/x5=45", "A/ns/x6=46", "A/ns/x7=47", "A/ns/x8=48", "A/ns/x9=49", "A/ns/y=hidden",
	}
	if got := value(c.Get(kind("A"), "x7", "ns")); got != "47" {
		t.Errorf("Get(x7) = %s, want 47", got)
	}
	if diff := cmp.Diff(want, keys(c.List(kind("A"), "ns"))); diff != "" {
		t.Errorf("list (-want +got):\n%s", diff)
	}
	c.Drain()
	difference := []string{
		"delete gone=1", "update x0=40", "add x1=41", "add x2=42", "add x3=43", "add x4=44",
		"add x5=45", "add x6=46", "add x7=47", "add x8=48", "add x9=49",
	}
	if diff := cmp.Diff(difference, *events); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want, keys(c.List(kind("A"), "ns"))); diff != "" {
		t.Errorf("list after the events (-want +got):\n%s", diff)
	}
}

// What a cache has lost beyond its history does not come back, though it was hidden by
// another one.
func TestHiddenObjectsThatGoBeyondTheHistory(t *testing.T) {
	first := memory.NewController(memory.Make(schemas("A")))
	second := memory.NewController(memory.Make(schemas("A"), memory.Options{HistoryLimit: 4}))
	c := aggregate.MakeCache(first, second)
	create(t, first, object("A", "ns", "x", "shadows"))
	create(t, second, object("A", "ns", "x", "hidden"))
	c.Drain()
	if err := second.Delete(kind("A"), "x", "ns", nil); err != nil {
		t.Fatal(err)
	}
	for i := range 10 {
		create(t, second, object("A", "ns", fmt.Sprint("y", i), "1"))
	}
	if got := value(c.Get(kind("A"), "x", "ns")); got != "shadows" {
		t.Errorf("Get = %s, want the first cache's object", got)
	}
	if err := first.Delete(kind("A"), "x", "ns", nil); err != nil {
		t.Fatal(err)
	}
	if got := c.Get(kind("A"), "x", "ns"); got != nil {
		t.Errorf("Get = %s after it has gone from both", value(got))
	}
}
