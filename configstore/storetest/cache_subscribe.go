// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"cmp"
	"fmt"
	"strconv"
	"sync"

	"github.com/pilotkit/pilotkit/configstore"
)

const (
	designCancel = "configstore.Subscriber"
	designBatch  = "configstore.BatchSubscriber"
	designList   = "configstore.ListSubscriber"
)

func subscribeChecks() []check {
	return []check{
		{Name: "Subscribe/Cancel", Promise: "after cancel has returned, no further event is handed to the handler; the others get theirs", Source: designCancel, Skip: need[configstore.Subscriber], Run: checkCancel},
		{Name: "Subscribe/CancelBeforeRun", Promise: "a handler that was cancelled before Run is never called", Source: designCancel, Skip: need[configstore.Subscriber], Run: checkCancelBeforeRun},
		{Name: "Subscribe/CancelInHandler", Promise: "cancel may be called in the handler, and more than once", Source: designCancel, Skip: need[configstore.Subscriber], Run: checkCancelInHandler},
		{Name: "Subscribe/Complete", Promise: "Subscribe gives the complete view that RegisterEventHandler gives", Source: designCancel, Skip: need[configstore.Subscriber], Run: checkSubscribeComplete},
		{Name: "SubscribeBatch/Timeline", Promise: "batches put together are the timeline that single handlers see", Source: designBatch, Skip: need[configstore.BatchSubscriber], Run: checkBatchTimeline},
		{Name: "SubscribeBatch/Replay", Promise: "a batch handler too first receives an Add for every object that exists", Source: designBatch, Skip: need[configstore.BatchSubscriber], Run: checkBatchReplay},
		{Name: "SubscribeBatch/After", Promise: "within one batch all single-event handlers run first", Source: designBatch, Skip: need[configstore.BatchSubscriber], Run: checkBatchAfter},
		{Name: "SubscribeBatch/Cancel", Promise: "after cancel has returned, no further batch is handed over", Source: designBatch, Skip: need[configstore.BatchSubscriber], Run: checkBatchCancel},
		{Name: "SubscribeBatch/Whole", Promise: "the events of what was committed as one come in one call", Source: designBatch, Skip: needBatches, Run: checkBatchWhole},
		{Name: "ListAndSubscribe/Complete", Promise: "the objects that are returned and the changes that follow are the timeline, without gap or duplicate", Source: designList, Skip: need[configstore.ListSubscriber], Run: checkListAndSubscribe},
	}
}

func (s *suite) subscribe(kind configstore.GroupVersionKind, h configstore.EventHandler) (cancel func()) {
	s.Helper()
	return ability[configstore.Subscriber](s).Subscribe(kind, h)
}

func (s *suite) subscribeBatch(h configstore.BatchHandler) (cancel func()) {
	s.Helper()
	kinds := []configstore.GroupVersionKind{widgetKind(), gadgetKind()}
	return ability[configstore.BatchSubscriber](s).SubscribeBatch(kinds, h)
}

func checkCancel(s *suite) {
	removed := &Recorder{}
	cancel := s.subscribe(widgetKind(), removed.Handle)
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
	cancel := s.subscribe(widgetKind(), removed.Handle)
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
	cancel = s.subscribe(widgetKind(), func(old, curr configstore.Config, event configstore.Event) {
		removed.Handle(old, curr, event)
		cancel()
		cancel()
	})
	kept := s.record(widgetKind())
	defer s.start().end()
	s.create(widget("default", "a", "1"))
	s.create(widget("default", "b", "1"))
	s.expectCalls(s.mark(kept, "end"), "add Widget default/a", "add Widget default/b")
	cancel()
	s.expectCalls(removed.Calls(), "add Widget default/a")
}

func checkSubscribeComplete(s *suite) {
	s.create(widget("default", "a", "1"))
	early, late := &Recorder{}, &Recorder{}
	s.subscribe(widgetKind(), early.Handle)
	defer s.start().end()
	s.take(early, 1)
	s.create(widget("default", "b", "1"))
	s.expectCalls(s.take(early, 1), "add Widget default/b")
	s.subscribe(widgetKind(), late.Handle)
	s.update(widget("default", "b", "2"))
	s.expectCalls(s.mark(late, "end"), "add Widget default/a", "add Widget default/b", "update Widget default/b")
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
	s.subscribeBatch(batches(batch))
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

func checkBatchReplay(s *suite) {
	s.create(widget("default", "a", "1"))
	s.create(gadget("default", "b", "1"))
	early, late := &Recorder{}, &Recorder{}
	s.subscribeBatch(batches(early))
	defer s.start().end()
	s.create(widget("default", "c", "1"))
	s.expectHistory("a batch handler registered before Run", s.mark(early, "middle"))
	s.subscribeBatch(batches(late))
	s.update(widget("default", "c", "2"))
	s.mark(early, "end")
	counts := map[string]int{}
	for _, c := range s.take(late, 6) {
		counts[c.String()]++
	}
	for _, want := range []string{
		"add Widget default/a", "add Gadget default/b", "add Widget default/c", "update Widget default/c",
		"add Widget storetest-marker/middle", "add Widget storetest-marker/end",
	} {
		if counts[want] != 1 {
			s.Broken("a late batch handler got %q %d times, want once; all of it: %v", want, counts[want], counts)
		}
	}
}

func checkBatchAfter(s *suite) {
	var mu sync.Mutex
	singles, early := 0, 0
	total := 0
	done := make(chan struct{})
	objects := s.many(100)
	s.subscribeBatch(func(changes []configstore.Change) {
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

func checkBatchCancel(s *suite) {
	removed, kept := &Recorder{}, s.record(widgetKind())
	cancel := s.subscribeBatch(batches(removed))
	defer s.start().end()
	s.create(widget("default", "a", "1"))
	s.take(removed, 1)
	cancel()
	cancel()
	s.create(widget("default", "b", "1"))
	s.mark(kept, "middle")
	s.mark(kept, "end")
	if calls := removed.Calls(); len(calls) > 0 {
		s.Broken("after cancel the batch handler was called: %v", calls)
	}
}

func needBatches(s *suite) string {
	return cmp.Or(needApply(s), need[configstore.BatchSubscriber](s))
}

func checkBatchWhole(s *suite) {
	batches := s.many(200)
	calls := make(chan []string, 2*batches+2)
	s.subscribeBatch(func(changes []configstore.Change) {
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

func checkListAndSubscribe(s *suite) {
	s.create(widget("default", "a", "1"))
	s.create(gadget("default", "b", "1"))
	s.catchUp()
	changes := &Recorder{}
	kinds := []configstore.GroupVersionKind{gadgetKind(), widgetKind()}
	objects, cancel := ability[configstore.ListSubscriber](s).ListAndSubscribe(kinds, batches(changes))
	if len(objects) != 2 || objects[0].Name != "b" || objects[1].Name != "a" {
		s.Stop("%d objects were returned, want Gadget default/b and Widget default/a", len(objects))
	}
	s.update(widget("default", "a", "2"))
	defer s.start().end()
	s.create(gadget("default", "c", "1"))
	s.expectCalls(s.mark(changes, "end"), "update Widget default/a", "add Gadget default/c")
	cancel()
	kept := s.record(widgetKind())
	s.create(widget("default", "d", "1"))
	s.mark(kept, "cancelled")
	if calls := changes.Calls(); len(calls) > 0 {
		s.Broken("after cancel the handler was called: %v", calls)
	}
}
