// SPDX-License-Identifier: Apache-2.0

package memory_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/memory"
)

func mutation(op configstore.Op, c configstore.Config) configstore.Mutation {
	return configstore.Mutation{Op: op, Config: c}
}

// record returns the calls of a handler for widgets and gadgets, as text.
func record(c *memory.Controller) *[]string {
	var got []string
	for _, kind := range []configstore.GroupVersionKind{widget(), gadget()} {
		c.RegisterEventHandler(kind, func(old, curr configstore.Config, e configstore.Event) {
			text := fmt.Sprintf("%v %s@%s", e, curr.Key().Object(), curr.ResourceVersion)
			if e == configstore.EventUpdate {
				text += " was " + old.ResourceVersion
			}
			got = append(got, text)
		})
	}
	return &got
}

func want(t *testing.T, got *[]string, want ...string) {
	t.Helper()
	if !slices.Equal(*got, want) {
		t.Errorf("got %q, want %q", *got, want)
	}
	*got = nil
}

func TestApply(t *testing.T) {
	s := newStore()
	c := memory.NewController(s)
	got := record(c)
	create(t, s, object(widget(), "a", "changed", "1"))
	create(t, s, object(widget(), "a", "gone", "1"))
	c.Drain()
	want(t, got, "add Widget a/changed@1", "add Widget a/gone@2")

	status := object(widgetAlias(), "a", "new", "")
	status.Status = wrapperspb.String("ready")
	conditional := object(widget(), "a", "changed", "3")
	conditional.ResourceVersion = "5" // of the mutation before it
	revision, err := s.Apply(
		mutation(configstore.OpCreate, object(widget(), "a", "new", "1")),
		mutation(configstore.OpDelete, object(widget(), "a", "gone", "")),
		mutation(configstore.OpUpdate, object(widget(), "a", "changed", "2")),
		mutation(configstore.OpUpdate, object(widget(), "a", "changed", "2")), // changes nothing
		mutation(configstore.OpUpdate, conditional),
		mutation(configstore.OpUpdateStatus, status),
		mutation(configstore.OpCreate, object(gadget(), "b", "brief", "1")),
		mutation(configstore.OpDelete, object(gadget(), "b", "brief", "")),
		mutation(configstore.OpCreate, object(widget(), "a", "gone", "2")),
	)
	if err != nil || revision != 10 || s.Revision() != 10 {
		t.Errorf("Apply = %d, %v, Revision() = %d, want 10", revision, err, s.Revision())
	}
	if got := names(s.List(widget(), "")); got != "a/changed a/gone a/new" || s.List(gadget(), "") != nil {
		t.Errorf("List = %s, %d gadgets", got, len(s.List(gadget(), "")))
	}
	c.Drain()
	want(t, got,
		"add Widget a/new@3", "delete Widget a/gone@2", "update Widget a/changed@5 was 1",
		"update Widget a/changed@6 was 5", "update Widget a/new@7 was 3",
		"add Gadget b/brief@8", "delete Gadget b/brief@8", "add Widget a/gone@10")
}

func TestApplyAllOrNothing(t *testing.T) {
	s := newStore()
	c := memory.NewController(s)
	got := record(c)
	create(t, s, object(widget(), "a", "foo", "1"))
	c.Drain()
	*got = nil
	list, all := s.List(widget(), "a"), s.List(widget(), "")
	stale := object(widget(), "a", "foo", "3")
	stale.ResourceVersion = "1" // not any more, at that point of the batch
	for _, tt := range []struct {
		last configstore.Mutation
		want error
	}{
		{mutation(configstore.OpCreate, object(widget(), "a", "foo", "2")), configstore.ErrAlreadyExists},
		{mutation(configstore.OpCreate, object(widget(), "a", "new", "2")), configstore.ErrAlreadyExists},
		{mutation(configstore.OpUpdate, object(widget(), "a", "none", "2")), configstore.ErrNotFound},
		{mutation(configstore.OpDelete, object(widget(), "a", "gone", "2")), configstore.ErrNotFound},
		{mutation(configstore.OpUpdate, stale), configstore.ErrConflict},
		{mutation(configstore.OpDelete, stale), configstore.ErrConflict},
		{mutation(configstore.OpCreate, object(widget(), "a", "x", "bad")), configstore.ErrInvalid},
		{mutation(configstore.OpCreate, object(configstore.GroupVersionKind{Kind: "None"}, "a", "x", "1")), configstore.ErrUnknownKind},
		{mutation(0, object(widget(), "a", "x", "1")), configstore.ErrInvalid},
	} {
		revision, err := s.Apply(
			mutation(configstore.OpCreate, object(widget(), "a", "new", "1")),
			mutation(configstore.OpUpdate, object(widget(), "a", "foo", "2")),
			mutation(configstore.OpCreate, object(widget(), "a", "gone", "1")),
			mutation(configstore.OpDelete, object(widget(), "a", "gone", "1")),
			tt.last,
		)
		if !errors.Is(err, tt.want) || revision != 1 || s.Revision() != 1 {
			t.Errorf("Apply = %d, %v, want 1, %v", revision, err, tt.want)
		}
		var invalid *configstore.ValidationError
		if errors.Is(err, configstore.ErrInvalid) && (!errors.As(err, &invalid) || invalid.Key.Name != "x") {
			t.Errorf("Apply = %v, which is no ValidationError of the object", err)
		}
	}
	if l := s.List(widget(), "a"); &l[0] != &list[0] || s.List(widget(), "")[0] != all[0] {
		t.Error("a batch that failed changed a list")
	}
	c.Drain()
	want(t, got)
	if revision, err := s.Apply(); revision != 1 || err != nil {
		t.Errorf("Apply() = %d, %v", revision, err)
	}
}

// A large batch finds its own objects by key.
func TestApplyLarge(t *testing.T) {
	s := newStore()
	var batch []configstore.Mutation
	for i := range 1000 {
		name := fmt.Sprintf("n%03d", i/4)
		switch i % 4 {
		case 0, 2:
			batch = append(batch, mutation(configstore.OpCreate, object(widget(), "a", name, fmt.Sprint(i))))
		case 1:
			batch = append(batch, mutation(configstore.OpDelete, object(widget(), "a", name, "")))
		case 3:
			batch = append(batch, mutation(configstore.OpUpdate, object(widget(), "a", name, fmt.Sprint(i))))
		}
	}
	revision, err := s.Apply(batch...)
	list := s.List(widget(), "")
	if err != nil || revision != 1000 || len(list) != 250 {
		t.Fatalf("Apply = %d, %v; %d objects", revision, err, len(list))
	}
	for i, c := range list {
		if want := fmt.Sprint(4*i + 3); value(c) != want {
			t.Errorf("%s is %s, want %s", c.Name, value(c), want)
		}
	}
}

// Within a batch, revisions are not in the order of installation; the lists must not lose changes
// after such a batch.
func TestListAfterBatchOutOfOrder(t *testing.T) {
	s := newStore()
	for _, ns := range []string{"a", ""} {
		for _, name := range []string{"x", "y"} {
			if s.Get(widget(), name, "a") == nil {
				create(t, s, object(widget(), "a", name, "0"))
			}
		}
		s.List(widget(), ns)
		_, err := s.Apply(
			mutation(configstore.OpUpdate, object(widget(), "a", "x", ns+"1")),
			mutation(configstore.OpUpdate, object(widget(), "a", "y", ns+"2")),
			mutation(configstore.OpUpdate, object(widget(), "a", "x", ns+"3")),
		)
		if err != nil {
			t.Fatal(err)
		}
		s.List(widget(), ns)
		update(t, s, object(widget(), "a", "x", ns+"4"))
		if list := s.List(widget(), ns); value(list[0]) != ns+"4" || value(list[1]) != ns+"2" {
			t.Errorf("List(%q) = %s, %s", ns, value(list[0]), value(list[1]))
		}
	}
}

func TestOpString(t *testing.T) {
	for op, want := range map[configstore.Op]string{
		configstore.OpCreate: "create", configstore.OpUpdate: "update", configstore.OpUpdateStatus: "update status of",
		configstore.OpDelete: "delete", 0: "Op(0)",
	} {
		if got := op.String(); got != want {
			t.Errorf("String() = %q, want %q", got, want)
		}
	}
}
