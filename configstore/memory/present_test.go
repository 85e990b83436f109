// SPDX-License-Identifier: Apache-2.0

package memory_test

import (
	"runtime"
	"strconv"
	"sync"
	"testing"

	"go.uber.org/atomic"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/memory"
)

// besideWriter calls f often, concurrently with a writer.
func besideWriter(t *testing.T, s *memory.Store, f func()) {
	t.Helper()
	create(t, s, object(widget(), "a", "x", "0"))
	var done atomic.Bool
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := 1; !done.Load(); i++ {
			update(t, s, object(widget(), "a", "x", strconv.Itoa(i)))
			runtime.Gosched() // the only processor would be the writer's for long
		}
	})
	defer wg.Wait()
	defer done.Store(true)
	for range 1000 {
		f()
	}
	if err := s.Validate(); err != nil {
		t.Error(err)
	}
}

// A revision that can be read can be watched from.
func TestWatchFromPresentRevision(t *testing.T) {
	s := memory.Make(newStore().Schemas(), memory.Options{HistoryLimit: 1 << 20})
	besideWriter(t, s, func() {
		from := s.Revision()
		for c, err := range s.Watch(t.Context(), from) {
			if err != nil || c.Revision != from+1 {
				t.Fatalf("Watch from %d, which was the present revision, yields revision %d, %v", from, c.Revision, err)
			}
			break
		}
	})
}

// Flush waits for all that could be read before it was called.
func TestFlushWhatIsRead(t *testing.T) {
	s := newStore()
	c := memory.NewController(s)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() { c.Run(stop) })
	defer wg.Wait()
	defer close(stop)
	handlesWhatIsRead(t, s, c, func() {
		if err := c.Flush(t.Context()); err != nil {
			t.Fatalf("Flush = %v", err)
		}
	})
}

// Drain handles all that could be read before it was called.
func TestDrainWhatIsRead(t *testing.T) {
	s := newStore()
	c := memory.NewController(s)
	handlesWhatIsRead(t, s, c, c.Drain)
}

func handlesWhatIsRead(t *testing.T, s *memory.Store, c *memory.Controller, handle func()) {
	t.Helper()
	var handled atomic.Uint64
	c.Subscribe([]configstore.GroupVersionKind{widget()}, func(changes []configstore.Change) {
		handled.Store(changes[len(changes)-1].Revision)
	})
	besideWriter(t, s, func() {
		before := s.Revision()
		read := before
		for read == before { // until a commit is in progress
			runtime.Gosched()
			read = s.Revision()
		}
		handle()
		if got := handled.Load(); got < read {
			t.Fatalf("revision %d was read, and %d was handled", read, got)
		}
	})
}
