// SPDX-License-Identifier: Apache-2.0

package aggregate_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/pilotkit/pilotkit/aggregate"
	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/memory"
	"github.com/pilotkit/pilotkit/configstore/storetest"
)

// A stage reads what its source has delivered, which is nothing any more when Run has ended.
func TestStageKeepsItsPromises(t *testing.T) {
	factory := func(_ testing.TB, schemas configstore.Schemas) storetest.Subject {
		source := newMember(schemas)
		s := aggregate.NewStage(source, schemas, func([]configstore.Change) []configstore.Change { return nil })
		s.Begin(func() []configstore.Change { return nil })
		return storetest.Subject{Store: s, Writer: source, CatchUp: func() {
			source.Drain()
			_ = source.Flush(t.Context())
		}}
	}
	storetest.TestStore(t, factory)
}

// copier derives an object of kind B from each object of kind A.
type copier struct {
	*aggregate.Stage
	t       *testing.T
	source  *memory.Controller
	log     bytes.Buffer
	batches []string
}

func newCopier(t *testing.T) *copier {
	t.Helper()
	c := &copier{t: t, source: newMember(schemas("A", "B", "C"))}
	c.Stage = aggregate.NewStage(c.source, schemas("B"), c.convert, aggregate.CacheOptions{Logger: slog.New(slog.NewTextHandler(&c.log, nil))})
	c.Subscribe([]configstore.GroupVersionKind{kind("B"), kind("C")}, func(changes []configstore.Change) {
		var texts []string
		for _, change := range changes {
			text := change.Event.String() + " "
			if change.Old != nil {
				text += value(change.Old) + ">"
			}
			texts = append(texts, text+change.Curr.GroupVersionKind.Kind+"/"+change.Curr.Name+"="+value(change.Curr))
		}
		c.batches = append(c.batches, strings.Join(texts, ", "))
	})
	return c
}

func (c *copier) convert(changes []configstore.Change) (out []configstore.Change) {
	for _, change := range changes {
		if change.Curr.GroupVersionKind == kind("A") {
			if value(change.Curr) == "panic" {
				panic("of the converter")
			}
			derived := object("B", change.Curr.Namespace, change.Curr.Name, value(change.Curr))
			if value(change.Curr) == "bad" {
				derived.Labels = map[string]string{"a": "\xff"}
			}
			out = append(out, configstore.Change{Event: change.Event, Curr: &derived})
		}
	}
	return out
}

// all returns what is derived from the present objects.
func (c *copier) all() []configstore.Change {
	var adds []configstore.Change
	for _, a := range c.source.List(kind("A"), "") {
		adds = append(adds, configstore.Change{Event: configstore.EventAdd, Curr: a})
	}
	return c.convert(adds)
}

// write writes "kind/name=value" or "kind/name" to the source, as one batch, and returns the resulting batches.
func (c *copier) write(objects ...string) []string {
	c.t.Helper()
	var mutations []configstore.Mutation
	for _, text := range objects {
		name, v, set := strings.Cut(text, "=")
		m := configstore.Mutation{Op: configstore.OpUpsert, Config: object(name[:1], "ns", name[2:], v)}
		if !set {
			m.Op = configstore.OpDelete
		}
		mutations = append(mutations, m)
	}
	c.batches = nil
	if _, err := c.source.Apply(mutations...); err != nil {
		c.t.Fatal(err)
	}
	c.List(kind("C"), "") // a read divides no batch
	c.Drain()
	return c.batches
}

// TestStage: a batch of the source and what is derived from it are one batch, the source's objects
// hide derived ones, and derived objects that are not valid keep their last state.
func TestStage(t *testing.T) {
	c := newCopier(t)
	expect := func(got []string, want ...string) {
		t.Helper()
		if !slices.Equal(got, want) {
			t.Errorf("batches %q, want %q", got, want)
		}
	}
	expect(c.write("A/a=1", "C/c=1"), "add C/c=1")
	if c.HasSynced() || c.Get(kind("B"), "a", "ns") != nil {
		t.Error("derived objects are there before Begin")
	}
	for range 2 {
		c.batches = nil
		c.Begin(c.all)
		c.Drain()
		if len(c.batches) > 0 {
			expect(c.batches, "add B/a=1")
		}
	}
	if !c.HasSynced() {
		t.Error("not synced")
	}
	expect(c.write("A/a=2", "C/c=2", "A/b=2"), "update 1>C/c=2, update 1>B/a=2, add B/b=2")
	expect(c.write("B/a=own"), "update 2>B/a=own")
	expect(c.write("A/a=3"))
	expect(c.write("B/a", "A/b"), "update own>B/a=3, delete B/b=2")
	expect(c.write("A/a=bad", "C/c=3"), "update 2>C/c=3")
	if got := value(c.Get(kind("B"), "a", "ns")); got != "3" {
		t.Errorf("B/a is %s, want its last state", got)
	}
	key := configstore.ConfigKey{Kind: kind("B"), Name: "a", Namespace: "ns"}
	if refused := c.Refused(); len(refused) != 1 || !errors.Is(refused[key], configstore.ErrInvalid) {
		t.Errorf("refused: %v", refused)
	}
	expect(c.write("A/a=panic", "C/c=4"), "update 3>C/c=4")
	if text := c.log.String(); strings.Count(text, "level=ERROR") != 2 || !strings.Contains(text, "of the converter") {
		t.Errorf("log: %s", text)
	}
	expect(c.write("A/a=5"), "update 3>B/a=5")
	if refused := c.Refused(); len(refused) > 0 {
		t.Errorf("refused: %v", refused)
	}
	c.batches = nil
	c.Derive(func() []configstore.Change {
		derived := object("B", "ns", "more", "6")
		return []configstore.Change{{Event: configstore.EventAdd, Curr: &derived}}
	})
	c.Drain()
	expect(c.batches, "add B/more=6")
	if _, err := c.Create(object("B", "ns", "x", "1")); !errors.Is(err, configstore.ErrReadOnly) {
		t.Errorf("Create: %v", err)
	}
	if got := fmt.Sprint(keys(c.List(kind("B"), ""))); got != "[B/ns/a=5 B/ns/more=6]" {
		t.Errorf("objects %s", got)
	}
}

// TestStageWithoutSource has derived objects alone.
func TestStageWithoutSource(t *testing.T) {
	s := aggregate.NewStage(nil, schemas("B"), nil)
	derived := object("B", "ns", "b", "1")
	add := func() []configstore.Change {
		return []configstore.Change{{Event: configstore.EventAdd, Curr: &derived}}
	}
	s.Derive(add)
	if s.Drain(); s.HasSynced() || len(s.List(kind("B"), "")) > 0 {
		t.Error("derived objects are there before Begin")
	}
	s.Begin(add)
	if s.Drain(); !s.HasSynced() || len(s.List(kind("B"), "")) != 1 {
		t.Error("derived objects are not there")
	}
}
