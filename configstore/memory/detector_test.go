// SPDX-License-Identifier: Apache-2.0

package memory_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/memory"
)

// panicOf returns what f panics with.
func panicOf(f func()) (text string) {
	defer func() {
		if r := recover(); r != nil {
			text = fmt.Sprint(r)
		}
	}()
	f()
	return ""
}

func TestDetectMutations(t *testing.T) {
	mutations := map[string]func(*configstore.Config){
		"label":         func(c *configstore.Config) { c.Labels["new"] = "x" },
		"label removed": func(c *configstore.Config) { delete(c.Labels, "a") },
		"annotation":    func(c *configstore.Config) { c.Annotations["a"] = "x" },
		"owner":         func(c *configstore.Config) { c.OwnerReferences[0].Name = "x" },
		"spec":          func(c *configstore.Config) { c.Spec.(*wrapperspb.StringValue).Value = "x" },
		"status":        func(c *configstore.Config) { c.Status.(*wrapperspb.StringValue).Value = "x" },
		"field":         func(c *configstore.Config) { c.ResourceVersion = "7" },
		"time":          func(c *configstore.Config) { c.CreationTimestamp = c.CreationTimestamp.Add(time.Second) },
	}
	uses := map[string]func(*memory.Store){
		"Get":                func(s *memory.Store) { s.Get(widget(), "foo", "default") },
		"List":               func(s *memory.Store) { s.List(widget(), "default") },
		"Snapshot().Get":     func(s *memory.Store) { s.Snapshot().Get(widget(), "foo", "default") },
		"Snapshot().List":    func(s *memory.Store) { s.Snapshot().List(widget(), "") },
		"Update":             func(s *memory.Store) { _, _ = s.Update(object(widget(), "default", "foo", "9")) },
		"Delete":             func(s *memory.Store) { _ = s.Delete(widget(), "foo", "default", nil) },
		"List of all":        func(s *memory.Store) { s.List(widget(), "") },
		"event, while in it": handleAndDrain,
	}
	for mutation, mutate := range mutations {
		for use, f := range uses {
			s := newStore()
			c := object(widget(), "default", "foo", "1")
			c.Labels, c.Annotations = map[string]string{"a": "b"}, map[string]string{"a": "b"}
			c.OwnerReferences = []configstore.OwnerReference{{Name: "o"}}
			c.Status = wrapperspb.String("ready")
			create(t, s, c)
			stored := s.Get(widget(), "foo", "default")
			f2 := func() { f(s) }
			if got := panicOf(func() { s.List(widget(), "") }); got != "" {
				t.Fatalf("an object that was not changed: %s", got)
			}
			mutate(stored)
			if got := panicOf(f2); !strings.HasPrefix(got, "memory: Widget default/foo was changed after it was stored") {
				t.Errorf("%s after a changed %s panics with %q", use, mutation, got)
			}
			// The panic has left no lock held.
			create(t, s, object(widget(), "default", "bar", "1"))
		}
	}
}

func handleAndDrain(s *memory.Store) {
	c := memory.NewController(s)
	c.RegisterEventHandler(widget(), func(_, _ configstore.Config, _ configstore.Event) {})
	c.Drain()
}

// The detector finds mutations of an object by the caller of Create, and by a handler.
func TestDetectMutationsByCallerAndHandler(t *testing.T) {
	s := newStore()
	c := object(widget(), "default", "foo", "1")
	c.Labels = map[string]string{}
	create(t, s, c)
	control := memory.NewController(s)
	control.RegisterEventHandler(widget(), func(_, curr configstore.Config, _ configstore.Event) { curr.Labels["a"] = "b" })
	if panicOf(control.Drain) == "" {
		t.Error("a handler changed an object unnoticed")
	}
	s = newStore()
	c.Labels = map[string]string{}
	control = memory.NewController(s)
	control.Subscribe([]configstore.GroupVersionKind{widget()}, func(changes []configstore.Change) {
		changes[0].Curr.Labels["a"] = "b"
		changes[0].Curr = nil // the slice is its own
	})
	create(t, s, c)
	if panicOf(control.Drain) == "" {
		t.Error("a batch handler changed an object unnoticed")
	}
	s = newStore()
	c.Labels = map[string]string{}
	create(t, s, c)
	c.Labels["a"] = "c"
	if panicOf(func() { s.Get(widget(), "foo", "default") }) == "" {
		t.Error("the caller of Create changed its object unnoticed")
	}
}

func TestDetectorOff(t *testing.T) {
	s := memory.Make(testSchemas())
	c := object(widget(), "default", "foo", "1")
	create(t, s, c)
	s.Get(widget(), "foo", "default").Spec.(*wrapperspb.StringValue).Value = "2"
	s.List(widget(), "")
}
