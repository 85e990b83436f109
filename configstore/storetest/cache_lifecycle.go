// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"sync"

	"github.com/pilotkit/pilotkit/configstore"
)

func lifecycleChecks() []check {
	return []check{
		{name: "Register/UnknownKind", promise: "registering for an unknown kind panics", source: promisedReplay, run: checkRegisterUnknown},
		{name: "Run/Twice", promise: "a second Run panics", source: promisedLife, run: checkRunTwice},
		{name: "Run/Stop", promise: "Run returns when stop is closed, also if it was closed before", source: promisedLife, run: checkRunStop},
		{name: "Run/Joins", promise: "Run finishes the event in progress before it returns, and does not drain the queue", source: promisedLife, run: checkRunJoins},
		{name: "HasSynced/Handlers", promise: "HasSynced is false until every handler registered before Run has processed the initial state", source: promisedLife, run: checkHasSyncedHandlers},
		{name: "HasSynced/True", promise: "HasSynced becomes true, also without handlers", source: promisedLife, run: checkHasSyncedTrue},
	}
}

// panics reports whether f does.
func panics(f func()) (yes bool) {
	defer func() { yes = recover() != nil }()
	f()
	return false
}

func checkRegisterUnknown(s *suite) {
	ignore := func(_, _ configstore.Config, _ configstore.Event) {}
	if !panics(func() { s.cache().RegisterEventHandler(unknownKind(), ignore) }) {
		s.broken("RegisterEventHandler(%s) returned", unknownKind())
	}
	if sub, ok := s.store.(configstore.Subscriber); ok && !panics(func() { sub.Subscribe(unknownKind(), ignore) }) {
		s.broken("Subscribe(%s) returned", unknownKind())
	}
	batch, ok := s.store.(configstore.BatchSubscriber)
	kinds := []configstore.GroupVersionKind{widgetKind(), unknownKind()}
	if ok && !panics(func() { batch.SubscribeBatch(kinds, func([]configstore.Change) {}) }) {
		s.broken("SubscribeBatch(%s) returned", unknownKind())
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
		s.within("a second Run", func() {}, func() { panicked = panics(func() { s.cache().Run(stopped) }) })
		if !panicked {
			s.broken("a second Run %s returned, want a panic", when)
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
	s.within("Run, whose stop was closed before", func() {}, func() { s.cache().Run(stopped) })
	// Reads and writes go on.
	s.create(widget("default", "bar", "1"))
	s.expectList(widgetKind(), "default", "default/bar", "default/foo")
}

func checkRunJoins(s *suite) {
	r := &Recorder{}
	var mu sync.Mutex
	finished := false
	g := newGate()
	s.cache().RegisterEventHandler(widgetKind(), func(old, curr configstore.Config, event configstore.Event) {
		r.Handle(old, curr, event)
		g.handle(old, curr, event)
		mu.Lock()
		finished = true
		mu.Unlock()
	})
	run := s.start()
	defer run.end()
	defer g.open()
	s.within("a Create", g.open, func() { _, _ = s.writer.Create(widget("default", "a", "1")) })
	s.awaitOpening(g.entered, g.open, "the call of a handler")
	s.within("a Create with a handler that blocks", g.open, func() { _, _ = s.writer.Create(widget("default", "b", "1")) })
	s.settle()
	opened := make(chan struct{})
	go func() {
		// Run has to wait for the handler; it gets time to make the mistake.
		defer close(opened)
		s.idle()
		g.open()
	}()
	run.end()
	mu.Lock()
	if !finished {
		s.broken("Run returned before the handler of the event in progress did")
	}
	mu.Unlock()
	<-opened
	s.expectCalls(r.Calls(), "add Widget default/a")
}

func checkHasSyncedHandlers(s *suite) {
	s.create(widget("default", "a", "1"))
	s.create(widget("default", "b", "1"))
	g := newGate()
	r := &Recorder{}
	s.cache().RegisterEventHandler(widgetKind(), func(old, curr configstore.Config, event configstore.Event) {
		g.handle(old, curr, event)
		r.Handle(old, curr, event)
	})
	if s.cache().HasSynced() {
		s.broken("HasSynced() = true before Run, with a handler that was told nothing")
	}
	run := s.start()
	defer run.end()
	defer g.open()
	s.awaitOpening(g.entered, g.open, "the call of a handler")
	if s.cache().HasSynced() {
		s.broken("HasSynced() = true while the first of two objects is being handled")
	}
	g.open()
	s.eventually("HasSynced() == true, all objects being handled,", s.cache().HasSynced)
	if got := len(r.Calls()); got != 2 {
		s.broken("HasSynced() = true when the handler had processed %d of 2 objects", got)
	}
}

func checkHasSyncedTrue(s *suite) {
	defer s.start().end()
	s.eventually("HasSynced() == true, without any handler,", s.cache().HasSynced)
	s.create(widget("default", "a", "1"))
	r := s.record(widgetKind())
	s.mark(r, "end")
	if !s.cache().HasSynced() {
		s.broken("HasSynced() = false again after a change and a registration")
	}
}
