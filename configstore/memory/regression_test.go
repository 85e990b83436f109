// SPDX-License-Identifier: Apache-2.0

package memory_test

import (
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"go.uber.org/atomic"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/memory"
)

// Each test here is named after something that goes wrong in Istio's memory store,
// and that was seen to go wrong when it was executed (Istio master, August 2026,
// unless another version is given). It passes here.

// Istio reads the key and writes in two critical sections: of four concurrent
// Creates of one key, more than one succeeded now and then.
func TestConcurrentCreatesBothSucceed(t *testing.T) {
	for i := range 500 {
		s := memory.Make(testSchemas())
		var succeeded atomic.Int64
		together(4, func(g int) {
			_, err := s.Create(object(widget(), "default", "foo", fmt.Sprint(g)))
			switch {
			case err == nil:
				succeeded.Inc()
			case !errors.Is(err, configstore.ErrAlreadyExists):
				t.Error(err)
			}
		})
		if n := succeeded.Load(); n != 1 || s.Revision() != 1 {
			t.Fatalf("round %d: %d of 4 Creates of one key succeeded, revision %d", i, n, s.Revision())
		}
	}
}

// By the same gap two Updates that carry the same revision both succeed, and one
// is lost.
func TestConcurrentUpdatesLoseOne(t *testing.T) {
	s := memory.Make(testSchemas())
	create(t, s, object(widget(), "default", "foo", "start"))
	for i := range 500 {
		revision := s.Get(widget(), "foo", "default").ResourceVersion
		var succeeded atomic.Int64
		together(4, func(g int) {
			c := object(widget(), "default", "foo", fmt.Sprint(i, g))
			c.ResourceVersion = revision
			_, err := s.Update(c)
			switch {
			case err == nil:
				succeeded.Inc()
			case !errors.Is(err, configstore.ErrConflict):
				t.Error(err)
			}
		})
		if n := succeeded.Load(); n != 1 {
			t.Fatalf("round %d: %d of 4 Updates of one revision succeeded", i, n)
		}
	}
}

// together calls f on n goroutines that start at once.
func together(n int, f func(i int)) {
	var wg sync.WaitGroup
	start := make(chan struct{})
	for i := range n {
		wg.Go(func() {
			<-start
			f(i)
		})
	}
	close(start)
	wg.Wait()
}

// Deleting with a revision that was never stored succeeds.
func TestDeleteIgnoresRevision(t *testing.T) {
	s := newStore()
	create(t, s, object(widget(), "default", "foo", "1"))
	bogus := "bogus"
	if err := s.Delete(widget(), "foo", "default", &bogus); !errors.Is(err, configstore.ErrConflict) {
		t.Errorf("Delete = %v, want ErrConflict", err)
	}
	if s.Get(widget(), "foo", "default") == nil {
		t.Error("the object is gone")
	}
	current := "1"
	if err := s.Delete(widget(), "foo", "default", &current); err != nil || s.Get(widget(), "foo", "default") != nil {
		t.Errorf("Delete with the stored revision = %v", err)
	}
}

// Update removes the key "ResourceVersion" from the annotations of the caller's
// object, and takes its value as the new revision.
func TestUpdateModifiesCallersAnnotations(t *testing.T) {
	s := newStore()
	create(t, s, object(widget(), "default", "foo", "1"))
	c := object(widget(), "default", "foo", "2")
	c.Annotations = map[string]string{"ResourceVersion": "upstream"}
	given := maps.Clone(c.Annotations)
	if got := update(t, s, c); got != "2" {
		t.Errorf("Update = %q, want 2", got)
	}
	if !maps.Equal(c.Annotations, given) || !maps.Equal(s.Get(widget(), "foo", "default").Annotations, given) {
		t.Errorf("annotations became %v", c.Annotations)
	}
}

// Make ignores the flag that switches validation off.
func TestMakeIgnoresSkipValidation(t *testing.T) {
	s := memory.Make(testSchemas(), memory.Options{SkipValidation: true})
	create(t, s, object(widget(), "default", "foo", "bad"))
}

// An Update without a creation time stores the zero time.
func TestUpdateLosesCreationTime(t *testing.T) {
	s := newStore()
	create(t, s, object(widget(), "default", "foo", "1"))
	update(t, s, object(widget(), "default", "foo", "2"))
	if s.Get(widget(), "foo", "default").CreationTimestamp.IsZero() {
		t.Error("the creation time is lost")
	}
}

// UpdateStatus replaces the spec, too.
func TestUpdateStatusReplacesSpec(t *testing.T) {
	s := newStore()
	create(t, s, object(widget(), "default", "foo", "1"))
	c := object(widget(), "default", "foo", "2")
	c.Status = wrapperspb.String("ready")
	if _, err := s.UpdateStatus(c); err != nil {
		t.Fatal(err)
	}
	if got := value(s.Get(widget(), "foo", "default")); got != "1" {
		t.Errorf("the spec is %s, want 1", got)
	}
}

// A revision is the time of the write: two within one tick of the clock are equal,
// so that a conflict goes unnoticed. In this bubble the clock stands still.
func TestRevisionsOfOneTickAreEqual(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		first := create(t, s, object(widget(), "default", "foo", "1"))
		second := update(t, s, object(widget(), "default", "foo", "2"))
		c := object(widget(), "default", "foo", "3")
		c.ResourceVersion = first
		if _, err := s.Update(c); first == second || !errors.Is(err, configstore.ErrConflict) {
			t.Errorf("revisions %q and %q, Update with the first = %v", first, second, err)
		}
	})
}

// An Update that changes nothing fires an event.
func TestUpdateOfNothingFires(t *testing.T) {
	s, c := newController()
	got := record(c)
	create(t, s, object(widget(), "default", "foo", "1"))
	update(t, s, object(widget(), "default", "foo", "1"))
	c.Drain()
	want(t, got, "add Widget default/foo@1")
}

// Handlers run on goroutines of their own, so that the handlers of two kinds, and two handlers of
// one kind, see changes in different orders.
func TestHandlersSeeDifferentOrders(t *testing.T) {
	s, c := newController()
	first, second := record(c), record(c)
	end := run(c)
	together(4, func(g int) {
		for i := range 100 {
			kind := []configstore.GroupVersionKind{widget(), gadget()}[(g+i)%2]
			create(t, s, object(kind, "default", fmt.Sprint(g, "-", i), "1"))
		}
	})
	if err := c.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	end()
	if len(*first) != 400 {
		t.Fatalf("%d events, want 400", len(*first))
	}
	for i, text := range *first {
		if _, revision, _ := strings.Cut(text, "@"); revision != strconv.Itoa(i+1) {
			t.Fatalf("event %d is %q: not in the order of the revisions", i, text)
		}
	}
	want(t, second, *first...)
}

// Comparing an object with a status to one without panics, depending on the order of the two.
func TestEqualPanicsOnMissingStatus(t *testing.T) {
	with, without := object(widget(), "default", "foo", "1"), object(widget(), "default", "foo", "1")
	with.Status = wrapperspb.String("ready")
	without.Spec = with.Spec
	if with.Equal(without) || without.Equal(with) || (configstore.Config{}).Equal(with) || with.Equal(configstore.Config{}) {
		t.Error("objects that differ are equal")
	}
	s := newStore()
	create(t, s, with)
	update(t, s, without)
	if got := update(t, s, with); got != "3" {
		t.Errorf("three states have %s revisions", got)
	}
}

// Istio 1.18: the hundred and first Create before Run blocks for ever.
func TestHundredAndFirstCreateBlocks(t *testing.T) {
	s, c := newController()
	got := record(c)
	fill(t, s, 1000)
	c.Drain()
	if len(*got) != 1000 {
		t.Errorf("%d events, want 1000", len(*got))
	}
}

// Istio 1.18 and 1.29: events carry the caller's object, without the revision and
// the creation time that the store assigned.
func TestEventsCarryTheCallersObject(t *testing.T) {
	s, c := newController()
	c.RegisterEventHandler(widget(), func(_, curr configstore.Config, _ configstore.Event) {
		if curr.ResourceVersion != "1" || curr.CreationTimestamp.IsZero() || curr.Generation != 1 {
			t.Errorf("the event has %+v", curr.Meta)
		}
	})
	create(t, s, object(widget(), "default", "foo", "1"))
	c.Drain()
}

// Istio 1.18 and 1.29: the old object of an Update event is read before the write,
// so that under concurrent writes it is not the one that was replaced, and the
// events are not in the order of the commits.
func TestUpdateEventsDoNotChain(t *testing.T) {
	s, c := newController()
	var last configstore.Config
	events := 0
	c.RegisterEventHandler(widget(), func(old, curr configstore.Config, e configstore.Event) {
		if e == configstore.EventUpdate && old.Spec != last.Spec {
			t.Errorf("an update from %s follows %s", old.ResourceVersion, last.ResourceVersion)
		}
		last = curr
		events++
	})
	create(t, s, object(widget(), "default", "foo", "start"))
	end := run(c)
	together(4, func(g int) {
		for i := range 200 {
			update(t, s, object(widget(), "default", "foo", fmt.Sprint(g, i)))
		}
	})
	if err := c.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	end()
	if events != 801 {
		t.Errorf("%d events, want 801", events)
	}
}

// Two lists of the same content differ in order.
func TestListOrderIsRandom(t *testing.T) {
	s := newStore()
	fill(t, s, 50)
	first := names(s.List(widget(), ""))
	u := newStore()
	for i := 50; i > 0; i-- {
		create(t, u, object(widget(), "a", fmt.Sprintf("n%d", i), "1"))
	}
	if second := names(u.List(widget(), "")); first != second {
		t.Errorf("%s differs from %s", first, second)
	}
}
