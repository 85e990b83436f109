// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"context"
	"strconv"
	"sync"

	"github.com/pilotkit/pilotkit/configstore"
)

const promisedDrive = "package configstore, life cycle"

func driveChecks() []check {
	return []check{
		{Name: "Drain", Promise: "Drain handles everything queued on the caller's goroutine, what handlers write included", Source: promisedDrive, Skip: need[configstore.Drainer], Run: checkDrain},
		{Name: "Drain/HasSynced", Promise: "HasSynced is true after Drain", Source: promisedDrive, Skip: need[configstore.Drainer], Run: checkDrainSynced},
		{Name: "Flush", Promise: "Flush waits until everything committed before the call has been handled", Source: promisedDrive, Skip: need[configstore.Flusher], Run: checkFlush},
		{Name: "Flush/Alone", Promise: "Flush does the work itself where nothing runs", Source: promisedDrive, Skip: need[configstore.Flusher], Run: checkFlushAlone},
		{Name: "Flush/Ended", Promise: "Flush returns an error when Run has ended", Source: promisedDrive, Skip: need[configstore.Flusher], Run: checkFlushEnded},
		{Name: "Flush/Context", Promise: "Flush returns the error of a context that ends first", Source: promisedDrive, Skip: need[configstore.Flusher], Run: checkFlushContext},
	}
}

func (s *suite) drain() {
	s.Helper()
	s.Within("Drain", ability[configstore.Drainer](s).Drain)
}

func (s *suite) flush(ctx context.Context) error {
	s.Helper()
	return ability[configstore.Flusher](s).Flush(ctx)
}

func checkDrain(s *suite) {
	s.create(widget("default", "a", "1"))
	var once sync.Once
	s.cache().RegisterEventHandler(widgetKind(), func(_, _ configstore.Config, _ configstore.Event) {
		once.Do(func() { _, _ = s.writer.Create(gadget("default", "reaction", "1")) })
	})
	r := s.record(widgetKind())
	g := s.record(gadgetKind())
	s.create(widget("default", "b", "1"))
	s.catchUp()
	s.drain()
	if s.subject.CatchUp != nil { // The handler's write is not there yet.
		s.catchUp()
		s.drain()
	}
	s.expectCalls(r.Take(), "add Widget default/a", "add Widget default/b")
	s.expectCalls(g.Take(), "add Gadget default/reaction")
	s.drain()
	s.expectCalls(r.Take())
	s.update(widget("default", "a", "2"))
	s.remove(widget("default", "b", ""))
	s.expectCalls(r.Calls())
	s.drain()
	s.expectCalls(r.Take(), "update Widget default/a", "delete Widget default/b")
	late := s.record(widgetKind())
	s.drain()
	s.expectCalls(late.Take(), "add Widget default/a")
	s.expectCalls(r.Take())
}

func checkDrainSynced(s *suite) {
	s.create(widget("default", "a", "1"))
	s.record(widgetKind())
	if s.cache().HasSynced() {
		s.Broken("HasSynced() = true before Drain, with a handler that was not called")
	}
	s.drain()
	if !s.cache().HasSynced() {
		s.Broken("HasSynced() = false after Drain")
	}
}

func checkFlush(s *suite) {
	r := s.record(widgetKind())
	defer s.start().end()
	ctx, cancel := context.WithTimeout(s.Context(), s.Timeout)
	defer cancel()
	for i := range rounds {
		s.create(widget("default", strconv.Itoa(i), "1"))
		s.update(widget("default", strconv.Itoa(i), "2"))
		if err := s.flush(ctx); err != nil {
			s.Stop("Flush = %v, want success", err)
		}
		if got, want := len(r.Calls()), 2*(i+1); got != want {
			s.Stop("after Flush the handler has seen %d of %d events", got, want)
		}
	}
}

func checkFlushAlone(s *suite) {
	r := s.record(widgetKind())
	s.create(widget("default", "a", "1"))
	var err error
	s.Within("Flush without Run", func() { err = s.flush(s.Context()) })
	if err != nil {
		s.Broken("Flush without Run = %v, want success", err)
	}
	s.expectCalls(r.Take(), "add Widget default/a")
}

func checkFlushEnded(s *suite) {
	s.record(widgetKind())
	s.start().end()
	var err error
	s.Within("Flush after Run", func() { err = s.flush(s.Context()) })
	if err == nil {
		s.Broken("Flush after Run has ended = nil, want an error")
	}
}

func checkFlushContext(s *suite) {
	g, end := s.blocked()
	defer end()
	ctx, cancel := context.WithCancel(s.Context())
	cancel()
	var err error
	s.WithinOpening("Flush with a cancelled context", g.Open, func() { err = s.flush(ctx) })
	if err == nil {
		s.Broken("Flush with a cancelled context = nil while an event is being handled")
	}
}
