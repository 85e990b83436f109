// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"fmt"
	"runtime"
	"strconv"
	"sync"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/internal/test/contract"
)

func orderChecks() []check {
	return []check{
		{Name: "Order/Kinds", Promise: "there is one order of events over all kinds: the order of the writes", Source: promisedEvents, Run: checkOrderKinds},
		{Name: "Order/Handlers", Promise: "for each event the handlers run in the order in which they were registered", Source: promisedEvents, Run: checkOrderHandlers},
		{Name: "Order/OneWorker", Promise: "all handlers of all kinds run on one worker, never two at a time", Source: promisedEvents, Run: checkOneWorker},
		{Name: "Order/Concurrent", Promise: "under concurrent writes every event follows from the one before: no gap, no duplicate, no wrong old", Source: promisedEvents, Run: checkOrderConcurrent},
		{Name: "Order/Agreement", Promise: "all handlers see the same order", Source: promisedEvents, Run: checkOrderAgreement},
	}
}

func checkOrderKinds(s *suite) {
	r := s.record(widgetKind(), gadgetKind(), planetKind())
	defer s.start().end()
	var want []string
	for i := range s.many(30) {
		w, g, p := widget("default", strconv.Itoa(i), "1"), gadget("default", strconv.Itoa(i), "1"), object(planetKind(), "", strconv.Itoa(i), "1")
		s.create(p)
		s.create(w)
		s.create(g)
		s.remove(w)
		want = append(want, "add "+p.Key().Object(), "add "+w.Key().Object(), "add "+g.Key().Object(), "delete "+w.Key().Object())
	}
	s.expectCalls(s.mark(r, "end"), want...)
}

func checkOrderHandlers(s *suite) {
	var l contract.Recording[string]
	const handlers = 3
	for i := range handlers {
		s.cache().RegisterEventHandler(widgetKind(), func(_, curr configstore.Config, event configstore.Event) {
			l.Add(fmt.Sprintf("%d %s %s", i, event, curr.Name))
		})
	}
	r := s.record(widgetKind())
	defer s.start().end()
	s.create(widget("default", "a", "1"))
	s.update(widget("default", "a", "2"))
	s.create(widget("default", "b", "1"))
	s.remove(widget("default", "a", ""))
	s.take(r, 4)
	var want []string
	for _, event := range []string{"add a", "update a", "add b", "delete a"} {
		for i := range handlers {
			want = append(want, fmt.Sprintf("%d %s", i, event))
		}
	}
	if got := l.All(); fmt.Sprint(got) != fmt.Sprint(want) {
		s.Broken("handlers ran as %v, want %v", got, want)
	}
}

func checkOneWorker(s *suite) {
	var mu sync.Mutex
	active, overlaps := 0, 0
	enter := func(n int) {
		mu.Lock()
		defer mu.Unlock()
		active += n
		if active > 1 {
			overlaps++
		}
	}
	for _, kind := range []configstore.GroupVersionKind{widgetKind(), gadgetKind(), widgetKind()} {
		s.cache().RegisterEventHandler(kind, func(_, _ configstore.Config, _ configstore.Event) {
			enter(1)
			runtime.Gosched()
			enter(-1)
		})
	}
	r := s.record(widgetKind(), gadgetKind())
	defer s.start().end()
	s.churn(s.many(50))
	s.mark(r, "end")
	mu.Lock()
	defer mu.Unlock()
	if overlaps > 0 {
		s.Broken("%d times a handler was called while another was running", overlaps)
	}
}

// churn lets four goroutines create, update and delete the same few objects
// of two kinds, and returns when all is written.
func (s *suite) churn(writes int) {
	race(4, func(i int) {
		for n := range writes {
			name, value := strconv.Itoa((n*7+i*3)%10), fmt.Sprintf("%d of %d", n, i)
			c := widget("default", name, value)
			if n%2 == 1 {
				c = gadget("default", name, value)
			}
			// Each of these may come too late or too early; that is the point.
			switch (n + i) % 4 {
			case 0, 1:
				if _, err := s.writer.Create(c); err == nil {
					continue
				}
				_, _ = s.writer.Update(c)
			case 2:
				_, _ = s.writer.Update(c)
			default:
				_ = s.writer.Delete(c.GroupVersionKind, c.Name, c.Namespace, nil)
			}
		}
	})
	s.catchUp()
}

func checkOrderConcurrent(s *suite) {
	r := s.record(widgetKind(), gadgetKind())
	defer s.start().end()
	s.churn(s.many(200))
	s.expectHistory("a handler registered before Run", s.mark(r, "end"))
}

// expectHistory demands that each call follows from the calls before it, and that all calls
// together lead to the current content of the store. The marker is not among the calls.
func (s *suite) expectHistory(handler string, calls []Call) {
	s.Helper()
	state := map[configstore.ConfigKey]configstore.Config{}
	for i, c := range calls {
		key := c.Curr.Key()
		last, exists := state[key]
		switch {
		case c.Event == configstore.EventAdd && exists:
			s.Stop("%s: call %d is %s, but the object was there as %s", handler, i, c, describe(&last))
		case c.Event != configstore.EventAdd && !exists:
			s.Stop("%s: call %d is %s, but the object was not there", handler, i, c)
		case c.Event == configstore.EventUpdate && (c.Old.Spec != last.Spec || c.Old.ResourceVersion != last.ResourceVersion):
			s.Stop("%s: call %d is %s with old = %s, but the object was %s", handler, i, c, describe(&c.Old), describe(&last))
		case c.Event == configstore.EventDelete && !configstore.EqualMessage(c.Curr.Spec, last.Spec):
			s.Stop("%s: call %d is %s with curr = %s, but the last state was %s", handler, i, c, describe(&c.Curr), describe(&last))
		}
		if c.Event == configstore.EventDelete {
			delete(state, key)
		} else {
			state[key] = c.Curr
		}
	}
	stored := 0
	for _, kind := range []configstore.GroupVersionKind{widgetKind(), gadgetKind()} {
		for _, c := range s.store.List(kind, "default") {
			stored++
			known, ok := state[c.Key()]
			if !ok || known.Spec != c.Spec || known.ResourceVersion != c.ResourceVersion {
				s.Broken("%s: the calls lead to %s, the store has %s", handler, describe(&known), describe(c))
			}
		}
	}
	if stored != len(state) {
		s.Broken("%s: the calls lead to %d objects, the store has %d", handler, len(state), stored)
	}
}

func checkOrderAgreement(s *suite) {
	one, two := s.record(widgetKind(), gadgetKind()), s.record(widgetKind(), gadgetKind())
	defer s.start().end()
	s.churn(s.many(100))
	first := s.mark(one, "end")
	second := s.take(two, len(first)+1)
	for i, c := range first {
		if d := second[i]; c.String() != d.String() || c.Curr.ResourceVersion != d.Curr.ResourceVersion {
			s.Stop("call %d is %s for one handler and %s for another", i, c, d)
		}
	}
}
