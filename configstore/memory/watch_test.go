// SPDX-License-Identifier: Apache-2.0

package memory_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/memory"
)

// fill creates n widgets.
func fill(tb testing.TB, s *memory.Store, n int) {
	tb.Helper()
	for range n {
		create(tb, s, object(widget(), "a", fmt.Sprintf("n%d", s.Revision()+1), "1"))
	}
}

func TestWatchFromEachRevision(t *testing.T) {
	s := newStore()
	fill(t, s, 200) // more than a watch takes at a time
	for from := range uint64(200) {
		next := from + 1
		for c, err := range s.Watch(t.Context(), from) {
			if err != nil || c.Revision != next || c.Event != configstore.EventAdd || c.Curr.Name != fmt.Sprintf("n%d", next) {
				t.Fatalf("Watch from %d yields %+v, %v instead of revision %d", from, c, err, next)
			}
			if next++; next > 200 {
				break
			}
		}
		if next != 201 {
			t.Fatalf("Watch from %d ended before revision %d", from, next)
		}
	}
}

func TestWatchWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		fill(t, s, 3)
		ctx, cancel := context.WithCancel(t.Context())
		var got []string
		var wg sync.WaitGroup
		wg.Go(func() {
			for c, err := range s.Watch(ctx, 3) {
				got = append(got, fmt.Sprint(c.Revision, " ", c.Event, " ", c.Curr.Name, " ", value(c.Old), " ", err))
			}
		})
		synctest.Wait()
		want(t, &got)
		update(t, s, object(widget(), "a", "n1", "2"))
		synctest.Wait()
		want(t, &got, "4 update n1 1 <nil>")
		if err := s.Delete(widget(), "n2", "a", nil); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		want(t, &got, "5 delete n2 absent <nil>")
		cancel()
		wg.Wait()
	})
}

func TestWatchEnds(t *testing.T) {
	s := newStore()
	fill(t, s, 5)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	n := 0
	for _, err := range s.Watch(ctx, 0) {
		if err != nil {
			t.Error(err)
		}
		if n++; n == 2 {
			cancel()
		}
	}
	if n != 2 {
		t.Errorf("%d changes, the context having ended after 2", n)
	}
	for c, err := range s.Watch(ctx, 0) {
		t.Errorf("a watch with an ended context yields %+v, %v", c, err)
	}
}

func TestWatchCompacted(t *testing.T) {
	s := memory.Make(testSchemas(), memory.Options{HistoryLimit: 10})
	first := func(from uint64) (configstore.Change, error) {
		for c, err := range s.Watch(t.Context(), from) {
			return c, err
		}
		return configstore.Change{}, errors.New("the watch ended")
	}
	fill(t, s, 25)
	for from := range uint64(30) {
		if from == 25 {
			continue // nothing to yield yet
		}
		c, err := first(from)
		if from >= 15 && from < 25 {
			if err != nil || c.Revision != from+1 {
				t.Errorf("Watch from %d yields %+v, %v", from, c, err)
			}
			continue
		}
		if !errors.Is(err, configstore.ErrCompacted) || err.Error() != fmt.Sprintf("watch from revision %d: revision compacted", from) {
			t.Errorf("Watch from %d yields %+v, %v, want ErrCompacted", from, c, err)
		}
	}
}

// A watch that falls behind the history ends with an error: it never has a gap,
// and never holds up the writer.
func TestWatchFallsBehind(t *testing.T) {
	s := memory.Make(testSchemas(), memory.Options{HistoryLimit: 100})
	fill(t, s, 1)
	next := uint64(1)
	var last error
	for c, err := range s.Watch(t.Context(), 0) {
		if last = err; err != nil {
			continue // must be the end
		}
		if c.Revision != next {
			t.Fatalf("revision %d instead of %d", c.Revision, next)
		}
		next++
		fill(t, s, 3) // faster than this loop, on its own goroutine
	}
	if !errors.Is(last, configstore.ErrCompacted) || next < 3 {
		t.Errorf("the watch ended at revision %d with %v, want ErrCompacted", next, last)
	}
}

func TestHistoryLimitDefault(t *testing.T) {
	s := memory.Make(testSchemas())
	fill(t, s, 1030)
	for from, want := range map[uint64]error{5: configstore.ErrCompacted, 6: nil} {
		for _, err := range s.Watch(t.Context(), from) {
			if !errors.Is(err, want) {
				t.Errorf("Watch from %d = %v, want %v", from, err, want)
			}
			break
		}
	}
}
