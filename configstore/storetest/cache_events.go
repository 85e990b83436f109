// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"fmt"
	"time"

	"github.com/pilotkit/pilotkit/configstore"
)

func eventChecks() []check {
	return []check{
		{Name: "Events/Add", Promise: "Add: old is the zero Config, curr the stored object with revision and times set", Source: promisedEvents, Run: checkEventAdd},
		{Name: "Events/Update", Promise: "Update: old is the very object replaced, curr the stored object", Source: promisedEvents, Run: checkEventUpdate},
		{Name: "Events/UpdateStatus", Promise: "a change of the status is an Update", Source: promisedEvents, Skip: writes, Run: checkEventStatus},
		{Name: "Events/Delete", Promise: "Delete: old is the zero Config, curr the last known state", Source: promisedEvents, Run: checkEventDelete},
		{Name: "Events/Recreate", Promise: "nothing is dropped: Delete and Create of a key are a Delete and an Add", Source: promisedEvents, Run: checkEventRecreate},
		{Name: "Events/Kind", Promise: "a handler gets the events of its kind only, under whichever version it was registered", Source: promisedEvents, Run: checkEventKind},
		{Name: "Events/NoOp", Promise: "a write that changes nothing sends no event", Source: promisedNoop, Skip: writes, Run: checkEventNoop},
		{Name: "Events/Refused", Promise: "a write that fails sends no event", Source: promisedEvents, Skip: writes, Run: checkEventRefused},
		{Name: "Events/Batch", Promise: "the events of a batch are contiguous and in its order", Source: promisedBatch, Skip: needApply, Run: checkEventBatch},
	}
}

// running is a cache at work.
type running struct {
	s      *suite
	stop   chan struct{}
	ended  chan struct{}
	closed bool
}

// start runs the cache; the check ends it with end.
func (s *suite) start() *running {
	s.Helper()
	cache := s.cache()
	r := &running{s: s, stop: make(chan struct{}), ended: make(chan struct{})}
	go func() {
		defer close(r.ended)
		cache.Run(r.stop)
	}()
	return r
}

// end stops the cache and waits until Run has returned. It may be called twice.
func (r *running) end() {
	r.s.Helper()
	if r.closed {
		return
	}
	r.closed = true
	close(r.stop)
	timer := time.NewTimer(r.s.Timeout)
	defer timer.Stop()
	select {
	case <-r.ended:
	case <-timer.C:
		r.s.Broken("Run has not returned %v after stop was closed", r.s.Timeout)
	}
}

// record registers a new Recorder for the kinds.
func (s *suite) record(kinds ...configstore.GroupVersionKind) *Recorder {
	r := &Recorder{}
	for _, kind := range kinds {
		s.cache().RegisterEventHandler(kind, r.Handle)
	}
	return r
}

// take waits until the recorder has n calls and takes them.
func (s *suite) take(r *Recorder, n int) []Call {
	s.Helper()
	if !r.calls.Await(s.Timeout, func(calls []Call) bool { return len(calls) >= n }) {
		s.Stop("only these %d of %d events have come after %v: %v", len(r.Calls()), n, s.Timeout, r.Calls())
	}
	return r.Take()
}

// mark writes an object of no other use, so that its event proves that all
// earlier events are in.
func (s *suite) mark(r *Recorder, name string) []Call {
	s.Helper()
	marker := widget("storetest-marker", name, "")
	s.create(marker)
	isMarker := func(calls []Call) bool {
		return len(calls) > 0 && calls[len(calls)-1].Curr.Key() == marker.Key()
	}
	if !r.calls.Await(s.Timeout, isMarker) {
		s.Stop("the Add of %s has not come last after %v; events so far: %v", marker.Key().Object(), s.Timeout, r.Calls())
	}
	calls := r.Take()
	return calls[:len(calls)-1]
}

// expectCalls demands exactly these events, each written as Call.String does.
func (s *suite) expectCalls(calls []Call, want ...string) bool {
	s.Helper()
	if got := fmt.Sprint(calls); got != fmt.Sprint(want) {
		s.Broken("events %v, want %v", got, fmt.Sprint(want))
		return false
	}
	return true
}

// isZero reports whether c is the zero Config.
func isZero(c configstore.Config) bool {
	return c.Equal(configstore.Config{}) && c.Labels == nil && c.Annotations == nil
}

func checkEventAdd(s *suite) {
	r := s.record(widgetKind())
	defer s.start().end()
	c := widget("default", "foo", "1")
	revision := s.create(c)
	calls := s.take(r, 1)
	if !s.expectCalls(calls, "add Widget default/foo") {
		return
	}
	if !isZero(calls[0].Old) {
		s.Broken("old = %s, want the zero Config", describe(&calls[0].Old))
	}
	stored, curr := s.get(c), calls[0].Curr
	if !curr.Equal(*stored) || curr.Spec != stored.Spec {
		s.Broken("curr = %+v, want the stored object %+v", curr, *stored)
	}
	if revision != "" && curr.ResourceVersion != revision || curr.CreationTimestamp.IsZero() {
		s.Broken("curr has the revision %q and the creation time %v, want %q and a time", curr.ResourceVersion, curr.CreationTimestamp, revision)
	}
}

func checkEventUpdate(s *suite) {
	r := s.record(widgetKind())
	defer s.start().end()
	c := widget("default", "foo", "1")
	s.create(c)
	s.take(r, 1)
	before := s.get(c)
	s.update(widget("default", "foo", "2"))
	calls := s.take(r, 1)
	if !s.expectCalls(calls, "update Widget default/foo") {
		return
	}
	if old := calls[0].Old; !old.Equal(*before) || old.Spec != before.Spec {
		s.Broken("old = %s, want the very object replaced, %s", describe(&old), describe(before))
	}
	stored := s.get(c)
	if curr := calls[0].Curr; !curr.Equal(*stored) || curr.Spec != stored.Spec {
		s.Broken("curr = %s, want the stored object %s", describe(&curr), describe(stored))
	}
}

func checkEventStatus(s *suite) {
	r := s.record(widgetKind())
	defer s.start().end()
	c := widget("default", "foo", "1")
	s.create(c)
	s.take(r, 1)
	s.updateStatus(configstore.Config{Meta: c.Meta, Status: content("ready")})
	calls := s.take(r, 1)
	if !s.expectCalls(calls, "update Widget default/foo") {
		return
	}
	if calls[0].Old.Status != nil || !configstore.EqualMessage(calls[0].Curr.Status, content("ready")) {
		s.Broken("the status went from %v to %v, want from nil to what was written", calls[0].Old.Status, calls[0].Curr.Status)
	}
}

func checkEventDelete(s *suite) {
	r := s.record(widgetKind())
	defer s.start().end()
	c := widget("default", "foo", "1")
	s.create(c)
	s.update(widget("default", "foo", "2"))
	last := s.get(c)
	s.remove(c)
	s.create(widget("default", "bar", "1"))
	calls := s.take(r, 4)
	if !s.expectCalls(calls, "add Widget default/foo", "update Widget default/foo", "delete Widget default/foo", "add Widget default/bar") {
		return
	}
	if old := calls[2].Old; !isZero(old) {
		s.Broken("old = %s, want the zero Config", describe(&old))
	}
	if curr := calls[2].Curr; valueOf(&curr) != "2" || !configstore.EqualMessage(curr.Spec, last.Spec) || curr.UID != last.UID {
		s.Broken("curr = %s, want the last known state %s", describe(&curr), describe(last))
	}
}

func checkEventRecreate(s *suite) {
	r := s.record(widgetKind())
	defer s.start().end()
	c := widget("default", "foo", "1")
	s.create(c)
	s.remove(c)
	s.create(c)
	s.remove(c)
	s.expectCalls(s.mark(r, "end"), "add Widget default/foo", "delete Widget default/foo",
		"add Widget default/foo", "delete Widget default/foo")
}

func checkEventKind(s *suite) {
	byAlias := s.record(widgetAlias())
	gadgets, planets := s.record(gadgetKind()), s.record(planetKind())
	defer s.start().end()
	s.create(gadget("default", "foo", "1"))
	s.create(object(widgetAlias(), "default", "foo", "1"))
	s.create(object(planetKind(), "", "earth", "1"))
	s.create(gadget("default", "end", "1"))
	s.create(object(planetKind(), "", "end", "1"))
	s.expectCalls(s.mark(byAlias, "end"), "add Widget default/foo")
	s.expectCalls(s.take(gadgets, 2), "add Gadget default/foo", "add Gadget default/end")
	s.expectCalls(s.take(planets, 2), "add Planet earth", "add Planet end")
}

func checkEventNoop(s *suite) {
	r := s.record(widgetKind())
	defer s.start().end()
	c := widget("default", "foo", "1")
	c.Status = content("ready")
	want := []string{"add Widget default/foo"}
	s.create(c)
	if s.subject.APIServer {
		want = append(want, "update Widget default/foo") // the status
	}
	s.update(c)
	s.update(s.get(c).Clone())
	s.updateStatus(c)
	s.expectCalls(s.mark(r, "end"), want...)
}

func checkEventRefused(s *suite) {
	r := s.record(widgetKind())
	defer s.start().end()
	c := widget("default", "foo", "1")
	s.create(c)
	stale := widget("default", "foo", "2")
	stale.ResourceVersion = "made-up"
	bad := widget("default", "foo", "2")
	bad.Spec = nil
	for _, try := range []func() (string, error){
		func() (string, error) { return s.writer.Create(widget("default", "foo", "2")) },
		func() (string, error) { return s.writer.Update(stale) },
		func() (string, error) { return s.writer.Update(bad) },
		func() (string, error) { return s.writer.Update(widget("default", "absent", "2")) },
		func() (string, error) { return "", s.writer.Delete(widgetKind(), "absent", "default", nil) },
		func() (string, error) {
			return "", s.writer.Delete(widgetKind(), "foo", "default", &stale.ResourceVersion)
		},
	} {
		if _, err := try(); err == nil {
			s.Broken("an impossible write succeeded")
		}
	}
	s.expectCalls(s.mark(r, "end"), "add Widget default/foo")
}

func checkEventBatch(s *suite) {
	r := s.record(widgetKind(), gadgetKind())
	defer s.start().end()
	other := make(chan struct{})
	go func() {
		defer close(other)
		for i := range rounds {
			_, _ = s.writer.Create(widget("other", fmt.Sprint(i), "1"))
		}
	}()
	_, err := s.subject.Batches.Apply(
		mutation(configstore.OpCreate, widget("default", "a", "1")),
		mutation(configstore.OpCreate, gadget("default", "b", "1")),
		mutation(configstore.OpUpdate, widget("default", "a", "2")),
		mutation(configstore.OpCreate, widget("default", "c", "1")),
		mutation(configstore.OpDelete, gadget("default", "b", "")),
	)
	<-other
	if err != nil {
		s.Stop("Apply = %v, want success", err)
	}
	want := []string{
		"add Widget default/a", "add Gadget default/b", "update Widget default/a", "add Widget default/c", "delete Gadget default/b",
	}
	if s.subject.NetBatches {
		want = []string{"add Widget default/a", "add Widget default/c"}
	}
	calls := s.mark(r, "end")
	for i, c := range calls {
		if c.Curr.Namespace == "default" && i+len(want) <= len(calls) {
			s.expectCalls(calls[i:i+len(want)], want...)
			return
		}
	}
	s.Broken("the events of the batch are not among %v", calls)
}
