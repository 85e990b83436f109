// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"sync"

	"github.com/pilotkit/pilotkit/configstore"
)

const promisedSubscribe = "configstore.Subscriber"

func subscribeChecks() []check {
	need := need[configstore.Subscriber]
	return []check{
		{Name: "Subscribe/Cancel", Promise: "after cancel has returned, no further batch is handed over; the others get theirs", Source: promisedSubscribe, Skip: need, Run: checkCancel},
		{Name: "Subscribe/CancelBeforeRun", Promise: "a handler that was cancelled before Run is never called", Source: promisedSubscribe, Skip: need, Run: checkCancelBeforeRun},
		{Name: "Subscribe/CancelInHandler", Promise: "cancel may be called in the handler, and more than once", Source: promisedSubscribe, Skip: need, Run: checkCancelInHandler},
		{Name: "Subscribe/Complete", Promise: "the objects that are returned and the changes that follow are the timeline, without gap or duplicate", Source: promisedSubscribe, Skip: need, Run: checkSubscribeComplete},
		{Name: "Subscribe/Timeline", Promise: "batches put together are the timeline that single handlers see", Source: promisedSubscribe, Skip: need, Run: checkBatchTimeline},
		{Name: "Subscribe/After", Promise: "within one batch all single-event handlers run first", Source: promisedSubscribe, Skip: need, Run: checkBatchAfter},
		{Name: "Subscribe/Whole", Promise: "the events of what was committed as one come in one call", Source: promisedSubscribe, Skip: needBatches, Run: checkBatchWhole},
	}
}

// subscribe subscribes to widgets and gadgets.
func (s *suite) subscribe(h configstore.BatchHandler) (objects []*configstore.Config, cancel func()) {
	s.Helper()
	return ability[configstore.Subscriber](s).Subscribe([]configstore.GroupVersionKind{gadgetKind(), widgetKind()}, h)
}

func checkCancel(s *suite) {
	removed := &Recorder{}
	_, cancel := s.subscribe(batches(removed))
	kept := s.record(widgetKind())
	defer s.start().end()
	s.create(widget("default", "a", "1"))
	s.take(removed, 1)
	s.take(kept, 1)
	cancel()
	s.create(widget("default", "b", "1"))
	s.expectCalls(s.mark(kept, "end"), "add Widget default/b")
	if calls := removed.Calls(); len(calls) > 0 {
		s.Broken("after cancel the handler was called: %v", calls)
	}
}

func checkCancelBeforeRun(s *suite) {
	s.create(widget("default", "a", "1"))
	removed := &Recorder{}
	_, cancel := s.subscribe(batches(removed))
	s.create(widget("default", "b", "1"))
	cancel()
	kept := s.record(widgetKind())
	defer s.start().end()
	s.mark(kept, "end")
	if calls := removed.Calls(); len(calls) > 0 {
		s.Broken("the cancelled handler was called: %v", calls)
	}
	s.Eventually("HasSynced() == true, with a cancelled handler,", s.cache().HasSynced)
}

func checkCancelInHandler(s *suite) {
	removed := &Recorder{}
	var cancel func()
	_, cancel = s.subscribe(func(changes []configstore.Change) {
		batches(removed)(changes)
		cancel()
		cancel()
	})
	kept := s.record(widgetKind())
	defer s.start().end()
	s.create(widget("default", "a", "1"))
	s.take(removed, 1)
	s.create(widget("default", "b", "1"))
	s.expectCalls(s.mark(kept, "end"), "add Widget default/a", "add Widget default/b")
	cancel()
	if calls := removed.Calls(); len(calls) > 0 {
		s.Broken("after cancel in the handler it was called: %v", calls)
	}
}

func checkSubscribeComplete(s *suite) {
	s.create(widget("default", "a", "1"))
	s.create(gadget("default", "b", "1"))
	s.catchUp()
	early, late := &Recorder{}, &Recorder{}
	list := func(changes *Recorder, want ...string) (cancel func()) {
		objects, cancel := s.subscribe(batches(changes))
		got := make([]string, 0, len(objects))
		for _, o := range objects {
			got = append(got, o.Key().Object())
		}
		if !slices.Equal(got, want) {
			s.Stop("the objects %q were returned, want %q", got, want)
		}
		return cancel
	}
	cancel := list(early, "Gadget default/b", "Widget default/a")
	s.update(widget("default", "a", "2"))
	defer s.start().end()
	s.create(gadget("default", "c", "1"))
	s.expectCalls(s.mark(early, "middle"), "update Widget default/a", "add Gadget default/c")
	defer list(late, "Gadget default/b", "Gadget default/c", "Widget default/a", "Widget storetest-marker/middle")()
	s.update(widget("default", "a", "3"))
	s.expectCalls(s.mark(late, "late"), "update Widget default/a")
	s.take(early, 2)
	cancel()
	s.create(widget("default", "d", "1"))
	s.mark(late, "end")
	if calls := early.Calls(); len(calls) > 0 {
		s.Broken("after cancel the handler was called: %v", calls)
	}
}

// batches returns a batch handler that hands its changes to a Recorder.
func batches(r *Recorder) configstore.BatchHandler {
	return func(changes []configstore.Change) {
		for _, c := range changes {
			var old configstore.Config
			if c.Old != nil {
				old = *c.Old
			}
			r.Handle(old, *c.Curr, c.Event)
		}
	}
}

func checkBatchTimeline(s *suite) {
	single, batch := s.record(widgetKind(), gadgetKind()), &Recorder{}
	s.subscribe(batches(batch))
	defer s.start().end()
	s.churn(s.many(100))
	want := s.mark(single, "end")
	got := s.take(batch, len(want)+1)
	for i, c := range want {
		if d := got[i]; c.String() != d.String() || c.Curr.Spec != d.Curr.Spec || c.Old.Spec != d.Old.Spec {
			s.Stop("change %d is %s for a single handler and %s in the batches", i, c, d)
		}
	}
	s.expectHistory("a batch handler", got[:len(want)])
}

func checkBatchAfter(s *suite) {
	var mu sync.Mutex
	singles, early := 0, 0
	total := 0
	done := make(chan struct{})
	objects := s.many(100)
	s.subscribe(func(changes []configstore.Change) {
		mu.Lock()
		defer mu.Unlock()
		total += len(changes)
		if singles < total {
			early++
		}
		if total == objects {
			close(done)
		}
	})
	// Registered later, and yet to be called first.
	s.cache().RegisterEventHandler(widgetKind(), func(_, _ configstore.Config, _ configstore.Event) {
		mu.Lock()
		defer mu.Unlock()
		singles++
	})
	for i := range objects {
		s.create(widget("default", strconv.Itoa(i), "1"))
	}
	defer s.start().end()
	s.Await(done, fmt.Sprintf("the handling of %d changes", objects))
	mu.Lock()
	defer mu.Unlock()
	if early > 0 {
		s.Broken("%d batches were handed over before the single-event handlers had seen all of their changes", early)
	}
}

func needBatches(s *suite) string {
	return cmp.Or(needApply(s), need[configstore.Subscriber](s))
}

func checkBatchWhole(s *suite) {
	batches := s.many(200)
	calls := make(chan []string, 2*batches+2)
	s.subscribe(func(changes []configstore.Change) {
		var names []string
		for _, c := range changes {
			names = append(names, c.Curr.Name)
		}
		calls <- names
	})
	defer s.start().end()
	for i := range batches {
		name := strconv.Itoa(i)
		_, err := s.subject.Batches.Apply(
			mutation(configstore.OpCreate, widget("default", name, "1")), mutation(configstore.OpCreate, gadget("default", name, "1")),
		)
		if err != nil {
			s.Stop("Apply = %v, want success", err)
		}
	}
	for handled := 0; handled < 2*batches; {
		var names []string
		received := make(chan struct{})
		go func() {
			defer close(received)
			names = <-calls
		}()
		s.AwaitOpening(received, func() { calls <- nil }, "a call of the batch handler")
		if handled += len(names); handled%2 == 1 {
			s.Stop("a call had half of a batch: %v", names)
		}
	}
}
