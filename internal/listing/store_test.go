// SPDX-License-Identifier: Apache-2.0

package listing

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/pilotkit/pilotkit/configstore"
)

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
