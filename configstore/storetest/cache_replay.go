// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"fmt"
	"strconv"
	"time"

	"github.com/pilotkit/pilotkit/configstore"
)

const promisedReplay = "package configstore, Events: a handler's view starts complete"

func replayChecks() []check {
	return []check{
		{Name: "Replay/Early", Promise: "a handler registered before Run first receives an Add for every object that exists, then the changes", Source: promisedReplay, Run: checkReplayEarly},
		{Name: "Replay/Late", Promise: "a handler registered after Run first receives an Add for every object that exists, then the changes", Source: promisedReplay, Run: checkReplayLate},
		{Name: "Replay/Zero", Promise: "a replayed Add is an Add: old is the zero Config, curr the stored object", Source: promisedReplay, Run: checkReplayZero},
		{Name: "Replay/Others", Promise: "the replay for a new handler does not reach the others", Source: promisedReplay, Run: checkReplayOthers},
		{Name: "Replay/Concurrent", Promise: "a handler registered while others write misses nothing and gets nothing twice", Source: promisedReplay, Run: checkReplayConcurrent},
		{Name: "Replay/BeforeRun", Promise: "events before Run are kept, however many, and delivered by Run", Source: promisedEvents, Run: checkBeforeRun},
	}
}

func checkReplayEarly(s *suite) {
	s.create(widget("default", "a", "1"))
	s.update(widget("default", "a", "2"))
	s.create(widget("default", "gone", "1"))
	s.remove(widget("default", "gone", ""))
	r := s.record(widgetKind())
	s.create(widget("default", "b", "1"))
	defer s.start().end()
	calls := s.mark(r, "end")
	if s.expectCalls(calls, "add Widget default/a", "add Widget default/b") && valueOf(&calls[0].Curr) != "2" {
		s.Broken("the Add for an object that was updated before has the value %q, want the current %q", valueOf(&calls[0].Curr), "2")
	}
}

func checkReplayLate(s *suite) {
	early := s.record(widgetKind())
	defer s.start().end()
	s.create(widget("default", "b", "1"))
	s.update(widget("default", "b", "2"))
	s.create(widget("default", "a", "1"))
	s.create(widget("default", "gone", "1"))
	s.remove(widget("default", "gone", ""))
	s.mark(early, "middle")
	late := s.record(widgetKind())
	s.update(widget("default", "a", "2"))
	calls := s.mark(late, "end")
	if len(calls) != 4 {
		s.Stop("events %v, want an Add for each of 3 objects and an update", calls)
	}
	added := map[string]string{}
	for _, c := range calls[:3] {
		added[c.String()] = valueOf(&c.Curr)
	}
	for _, c := range []configstore.Config{widget("default", "b", "2"), widget("default", "a", "1"), widget("storetest-marker", "middle", "")} {
		if got, ok := added["add "+c.Key().Object()]; !ok || got != valueOf(&c) {
			s.Broken("the first events are %v, want an Add of %s with the value %q among them", calls[:3], c.Key().Object(), valueOf(&c))
		}
	}
	s.expectCalls(calls[3:], "update Widget default/a")
}

func checkReplayZero(s *suite) {
	c := widget("default", "foo", "1")
	s.create(c)
	early := s.record(widgetKind())
	defer s.start().end()
	s.take(early, 1)
	s.update(widget("default", "foo", "2"))
	s.take(early, 1)
	calls := s.take(s.record(widgetKind()), 1)
	stored := s.get(c)
	if got := calls[0]; !isZero(got.Old) || !got.Curr.Equal(*stored) || got.Curr.Spec != stored.Spec {
		s.Broken("the replay is %s from %s to %s, want an Add of the stored object %s",
			got, describe(&got.Old), describe(&got.Curr), describe(stored))
	}
}

func checkReplayOthers(s *suite) {
	first := s.record(widgetKind())
	defer s.start().end()
	s.create(widget("default", "foo", "1"))
	s.take(first, 1)
	second := s.record(widgetKind())
	s.take(second, 1)
	s.expectCalls(s.mark(first, "end"))
	s.expectCalls(s.mark(second, "end2"), "add Widget storetest-marker/end")
}

func checkReplayConcurrent(s *suite) {
	early := s.record(widgetKind(), gadgetKind())
	defer s.start().end()
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.churn(s.many(200))
	}()
	var late []*Recorder
	for range 8 {
		late = append(late, s.record(widgetKind(), gadgetKind()))
	}
	<-done
	for range 2 {
		late = append(late, s.record(widgetKind(), gadgetKind()))
	}
	s.expectHistory("the handler registered first", s.mark(early, "end"))
	for i, r := range late {
		s.expectHistory(fmt.Sprintf("late handler %d", i), s.untilMarker(r))
	}
}

// untilMarker waits for the Add of the marker "end" and returns the calls but
// that one.
func (s *suite) untilMarker(r *Recorder) []Call {
	s.Helper()
	seen := 0
	var others []Call
	found := r.calls.Await(s.Timeout, func(calls []Call) bool {
		for ; seen < len(calls); seen++ {
			if calls[seen].Curr.Namespace == "storetest-marker" {
				others = append(append(others, calls[:seen]...), calls[seen+1:]...)
				return true
			}
		}
		return false
	})
	if !found {
		s.Stop("the marker has not come after %v; events so far: %v", s.Timeout, r.Calls())
	}
	return others
}

func checkBeforeRun(s *suite) {
	r := s.record(widgetKind())
	objects := s.many(1000)
	var want []string
	for i := range objects {
		c := widget("default", strconv.Itoa(i), "1")
		s.Within("the Create of object "+strconv.Itoa(i)+" before Run", func() {
			if _, err := s.writer.Create(c); err != nil {
				s.Broken("Create before Run = %v", err)
			}
		})
		want = append(want, "add "+c.Key().Object())
	}
	s.catchUp()
	if calls := r.Calls(); len(calls) != 0 {
		s.Broken("before Run the handler was called already: %v", calls[0])
	}
	before := time.Now()
	defer s.start().end()
	calls := s.take(r, objects)
	if fmt.Sprint(calls) != fmt.Sprint(want) {
		s.Broken("%v after Run the events are not those of the %d writes before it, in their order", time.Since(before), objects)
	}
}
