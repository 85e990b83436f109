// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"sync"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/internal/test/contract"
)

func lifecycleChecks() []check {
	return []check{
		{Name: "Register/UnknownKind", Promise: "registering for an unknown kind panics", Source: promisedReplay, Run: checkRegisterUnknown},
		{Name: "Run/Twice", Promise: "a second Run panics", Source: promisedLife, Run: checkRunTwice},
		{Name: "Run/Stop", Promise: "Run returns when stop is closed, also if it was closed before", Source: promisedLife, Run: checkRunStop},
		{Name: "Run/Joins", Promise: "Run finishes the event in progress before it returns, and does not drain the queue", Source: promisedLife, Run: checkRunJoins},
		{Name: "HasSynced/Handlers", Promise: "HasSynced is false until every handler registered before Run has processed the initial state", Source: promisedLife, Run: checkHasSyncedHandlers},
		{Name: "HasSynced/True", Promise: "HasSynced becomes true, also without handlers", Source: promisedLife, Run: checkHasSyncedTrue},
	}
}

func checkRegisterUnknown(s *suite) {
	ignore := func(_, _ configstore.Config, _ configstore.Event) {}
	if !contract.Panics(func() { s.cache().RegisterEventHandler(unknownKind(), ignore) }) {
		s.Broken("RegisterEventHandler(%s) returned", unknownKind())
	}
	subscriber, ok := configstore.As[configstore.Subscriber](s.store)
	kinds := []configstore.GroupVersionKind{widgetKind(), unknownKind()}
	if ok && !contract.Panics(func() { subscriber.Subscribe(kinds, func([]configstore.Change) {}) }) {
		s.Broken("Subscribe(%s) returned", unknownKind())
	}
}

func checkRunTwice(s *suite) {
	r := s.record(widgetKind())
	run := s.start()
	defer run.end()
	s.mark(r, "running")
	// Closed at once: a Run that does not panic is to return.
	stopped := make(chan struct{})
	close(stopped)
	again := func(when string) {
		s.Helper()
		panicked := false
		s.Within("a second Run", func() { panicked = contract.Panics(func() { s.cache().Run(stopped) }) })
		if !panicked {
			s.Broken("a second Run %s returned, want a panic", when)
		}
	}
	again("beside the first")
	s.mark(r, "still-running")
	run.end()
	again("after the first")
}

func checkRunStop(s *suite) {
	s.create(widget("default", "foo", "1"))
	s.record(widgetKind())
	stopped := make(chan struct{})
	close(stopped)
	s.Within("Run, whose stop was closed before", func() { s.cache().Run(stopped) })
	// Reads and writes go on.
	s.create(widget("default", "bar", "1"))
	s.expectList(widgetKind(), "default", "default/bar", "default/foo")
}

func checkRunJoins(s *suite) {
	r := &Recorder{}
	var mu sync.Mutex
	finished := false
	g := contract.NewGate()
	s.cache().RegisterEventHandler(widgetKind(), func(old, curr configstore.Config, event configstore.Event) {
		r.Handle(old, curr, event)
		g.Pass()
		mu.Lock()
		finished = true
		mu.Unlock()
	})
	run := s.start()
	defer run.end()
	defer g.Open()
	s.WithinOpening("a Create", g.Open, func() { _, _ = s.writer.Create(widget("default", "a", "1")) })
	s.AwaitOpening(g.Entered, g.Open, "the call of a handler")
	s.WithinOpening("a Create with a handler that blocks", g.Open, func() { _, _ = s.writer.Create(widget("default", "b", "1")) })
	s.catchUp()
	opened := make(chan struct{})
	go func() {
		// Run has to wait for the handler; it gets time to make the mistake.
		defer close(opened)
		s.Idle()
		g.Open()
	}()
	run.end()
	mu.Lock()
	if !finished {
		s.Broken("Run returned before the handler of the event in progress did")
	}
	mu.Unlock()
	<-opened
	s.expectCalls(r.Calls(), "add Widget default/a")
}

func checkHasSyncedHandlers(s *suite) {
	s.create(widget("default", "a", "1"))
	s.create(widget("default", "b", "1"))
	g := contract.NewGate()
	r := &Recorder{}
	s.cache().RegisterEventHandler(widgetKind(), func(old, curr configstore.Config, event configstore.Event) {
		g.Pass()
		r.Handle(old, curr, event)
	})
	if s.cache().HasSynced() {
		s.Broken("HasSynced() = true before Run, with a handler that was not called")
	}
	run := s.start()
	defer run.end()
	defer g.Open()
	s.AwaitOpening(g.Entered, g.Open, "the call of a handler")
	if s.cache().HasSynced() {
		s.Broken("HasSynced() = true while the first of two objects is being handled")
	}
	g.Open()
	s.Eventually("HasSynced() == true, all objects being handled,", s.cache().HasSynced)
	if got := len(r.Calls()); got != 2 {
		s.Broken("HasSynced() = true when the handler had processed %d of 2 objects", got)
	}
}

func checkHasSyncedTrue(s *suite) {
	defer s.start().end()
	s.Eventually("HasSynced() == true, without any handler,", s.cache().HasSynced)
	s.create(widget("default", "a", "1"))
	r := s.record(widgetKind())
	s.mark(r, "end")
	if !s.cache().HasSynced() {
		s.Broken("HasSynced() = false again after a change and a registration")
	}
}
