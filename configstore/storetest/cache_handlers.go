// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"strconv"
	"sync"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/internal/test/contract"
)

const promisedFree = "package configstore, Events: a handler may write, register handlers, or block"

func handlerChecks() []check {
	return []check{
		{Name: "Handler/Blocks/Writers", Promise: "writers never wait for handlers, and nothing is lost", Source: promisedFree, Run: checkBlockedWriters},
		{Name: "Handler/Blocks/Readers", Promise: "reads and registrations do not wait for handlers", Source: promisedFree, Run: checkBlockedReaders},
		{Name: "Handler/Writes", Promise: "a handler may write to the store, and the events of that follow", Source: promisedFree, Run: checkHandlerWrites},
		{Name: "Handler/Registers", Promise: "a handler may register handlers, and they too get a complete view", Source: promisedFree, Run: checkHandlerRegisters},
	}
}

func freshnessChecks() []check {
	const source = "package configstore, Events: reads are at least as fresh as the event"
	return []check{
		{Name: "Fresh/Get", Promise: "when a handler runs, Get shows a state at least as fresh as the event", Source: source, Run: checkFreshGet},
		{Name: "Fresh/List", Promise: "when a handler runs, List shows a state at least as fresh as the event", Source: source, Run: checkFreshList},
		{Name: "Fresh/Kinds", Promise: "when a handler runs, reads of other kinds show at least what was written before", Source: source, Run: checkFreshKinds},
	}
}

// blocked starts the cache with a handler that is blocked in its first event.
func (s *suite) blocked() (g *contract.Gate, end func()) {
	s.Helper()
	g = contract.NewGate()
	s.cache().RegisterEventHandler(widgetKind(), func(_, _ configstore.Config, _ configstore.Event) { g.Pass() })
	r := s.start()
	end = func() {
		g.Open()
		r.end()
	}
	s.WithinOpening("a Create with a handler that blocks", end, func() { _, _ = s.writer.Create(widget("default", "first", "1")) })
	s.catchUp()
	s.AwaitOpening(g.Entered, end, "the call of a handler")
	return g, end
}

func checkBlockedWriters(s *suite) {
	r := s.record(widgetKind())
	g, end := s.blocked()
	defer end()
	objects := s.many(500)
	var want []string
	for i := range objects {
		want = append(want, "add Widget default/"+strconv.Itoa(i))
	}
	s.WithinOpening("the writing while a handler is blocked", g.Open, func() {
		for i := range objects {
			if _, err := s.writer.Create(widget("default", strconv.Itoa(i), "1")); err != nil {
				s.Broken("Create = %v", err)
			}
		}
	})
	s.catchUp()
	g.Open()
	s.expectCalls(s.mark(r, "end"), append([]string{"add Widget default/first"}, want...)...)
}

func checkBlockedReaders(s *suite) {
	g, end := s.blocked()
	defer end()
	r := &Recorder{}
	s.WithinOpening("the reading while a handler is blocked", g.Open, func() {
		if s.read(widget("default", "first", "")) == nil {
			s.Broken("Get = nil, want the object whose event is being handled")
		}
		if got := len(s.store.List(widgetKind(), "default")); got != 1 {
			s.Broken("List has %d objects, want 1", got)
		}
		s.cache().HasSynced()
	})
	s.WithinOpening("RegisterEventHandler while a handler is blocked", g.Open, func() {
		s.cache().RegisterEventHandler(widgetKind(), r.Handle)
	})
	g.Open()
	s.expectCalls(s.mark(r, "end"), "add Widget default/first")
}

func checkHandlerWrites(s *suite) {
	var once sync.Once
	var failed error
	s.cache().RegisterEventHandler(widgetKind(), func(_, _ configstore.Config, _ configstore.Event) {
		once.Do(func() {
			_, create := s.writer.Create(gadget("default", "reaction", "1"))
			_, update := s.writer.Update(gadget("default", "reaction", "2"))
			remove := s.writer.Delete(gadgetKind(), "reaction", "default", nil)
			for _, err := range []error{create, update, remove} {
				if err != nil {
					failed = err
				}
			}
		})
	})
	r := s.record(widgetKind(), gadgetKind())
	defer s.start().end()
	s.Within("a Create whose handler writes", func() { _, _ = s.writer.Create(widget("default", "trigger", "1")) })
	calls := s.take(r, 4)
	s.expectCalls(calls, "add Widget default/trigger", "add Gadget default/reaction",
		"update Gadget default/reaction", "delete Gadget default/reaction")
	if failed != nil {
		s.Broken("a write in a handler = %v", failed)
	}
}

func checkHandlerRegisters(s *suite) {
	inner := &Recorder{}
	var once sync.Once
	s.cache().RegisterEventHandler(widgetKind(), func(_, _ configstore.Config, _ configstore.Event) {
		once.Do(func() {
			s.cache().RegisterEventHandler(gadgetKind(), inner.Handle)
			s.cache().RegisterEventHandler(widgetKind(), inner.Handle)
		})
	})
	r := s.record(widgetKind())
	defer s.start().end()
	s.create(gadget("default", "before", "1"))
	s.create(widget("default", "trigger", "1"))
	s.take(r, 1)
	s.create(gadget("default", "after", "1"))
	counts := map[string]int{}
	for _, c := range s.mark(inner, "end") {
		counts[c.String()]++
	}
	for _, want := range []string{"add Gadget default/before", "add Widget default/trigger", "add Gadget default/after"} {
		if counts[want] != 1 {
			s.Broken("the handler got %q %d times, want once; all of it: %v", want, counts[want], counts)
		}
	}
}

// version reads the number that a freshness check wrote as the value; 0 if the
// object is absent.
func version(c *configstore.Config) int {
	n, err := strconv.Atoi(valueOf(c))
	if err != nil {
		return 0
	}
	return n
}

func checkFreshGet(s *suite) {
	s.checkFresh(func(c configstore.Config) *configstore.Config { return s.read(c) })
}

func checkFreshList(s *suite) {
	s.checkFresh(func(c configstore.Config) *configstore.Config {
		for _, namespace := range []string{configstore.NamespaceAll, c.Namespace} {
			found := false
			for _, d := range s.store.List(c.GroupVersionKind, namespace) {
				found = found || d.Name == c.Name && version(d) >= version(&c)
			}
			if !found {
				return nil
			}
		}
		return &c
	})
}

// checkFresh reads each object in the handlers of its events.
func (s *suite) checkFresh(read func(configstore.Config) *configstore.Config) {
	s.Helper()
	var stale contract.Recording[string]
	s.cache().RegisterEventHandler(widgetKind(), func(_, curr configstore.Config, event configstore.Event) {
		got := read(curr)
		switch {
		case event != configstore.EventDelete && version(got) < version(&curr):
			stale.Add(event.String() + " of the value " + valueOf(&curr) + ", read " + describe(got))
		case event == configstore.EventDelete && got != nil:
			stale.Add("delete, read " + describe(got))
		}
	})
	r := s.record(widgetKind())
	defer s.start().end()
	s.create(widget("default", "kept", "1"))
	for i := range s.many(100) {
		s.update(widget("default", "kept", strconv.Itoa(i+2)))
		c := widget("default", "gone-"+strconv.Itoa(i), "0")
		s.create(c)
		s.remove(c)
	}
	// Both in a burst, as above, and one at a time.
	s.mark(r, "burst")
	for i := range s.many(20) {
		c := widget("default", "slow-"+strconv.Itoa(i), "1")
		s.create(c)
		s.take(r, 1)
		s.update(widget("default", c.Name, "2"))
		s.take(r, 1)
	}
	if lines := stale.All(); len(lines) > 0 {
		s.Broken("%d reads in handlers were stale, the first: %s", len(lines), lines[0])
	}
}

func checkFreshKinds(s *suite) {
	var stale contract.Recording[string]
	s.cache().RegisterEventHandler(gadgetKind(), func(_, curr configstore.Config, _ configstore.Event) {
		if s.read(widget(curr.Namespace, curr.Name, "")) == nil || len(s.store.List(widgetKind(), curr.Namespace)) == 0 {
			stale.Add(curr.Name)
		}
	})
	r := s.record(gadgetKind())
	defer s.start().end()
	objects := s.many(50)
	for i := range objects {
		s.create(widget("default", strconv.Itoa(i), "1"))
		s.create(gadget("default", strconv.Itoa(i), "1"))
	}
	s.take(r, objects)
	if lines := stale.All(); len(lines) > 0 {
		s.Broken("in the handlers of %d Gadgets the Widgets that were written before them were not there", len(lines))
	}
}
