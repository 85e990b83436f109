// SPDX-License-Identifier: Apache-2.0

package serviceentry_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/configstore/memory"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/serviceentry"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// TestFlush: Flush waits for what another goroutine is handling, handlers
// included, and for nothing that comes later.
func TestFlush(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSystem(t, serviceentry.Options{})
		var seen []string
		proceed := make(chan struct{})
		s.registry.AppendServiceHandler(func(_, curr *registry.Service, _ registry.Event) {
			<-proceed
			seen = append(seen, string(curr.Hostname))
		})
		go s.apply(entry("a", nil, "a.com"))
		synctest.Wait()
		flushed := make(chan error, 1)
		go func() { flushed <- s.registry.Flush(t.Context()) }()
		synctest.Wait()
		select {
		case err := <-flushed:
			t.Errorf("Flush = %v while a handler was at work", err)
		default:
		}
		canceled, cancel := context.WithCancel(t.Context())
		cancel()
		if err := s.registry.Flush(canceled); !errors.Is(err, context.Canceled) {
			t.Errorf("Flush with a cancelled context = %v", err)
		}
		close(proceed)
		synctest.Wait()
		if err := <-flushed; err != nil {
			t.Errorf("Flush = %v", err)
		}
		diff(t, "handled before Flush returned", seen, []string{"a.com"})
		if err := s.registry.Flush(t.Context()); err != nil {
			t.Errorf("Flush with nothing to do = %v", err)
		}
	})
}

// TestNoUpdater: a nil updater is Discard, and a warning; handlers are called all the same.
func TestNoUpdater(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	cache := memory.NewController(memory.Make(istio.Schemas()))
	services := serviceentry.New(cache, nil, serviceentry.Options{ClusterID: "c", Logger: slog.New(slog.NewTextHandler(&log, nil))})
	diff(t, "warnings", strings.Count(log.String(), "the registry has no updater"), 1)
	defer func() { diff(t, "lines", strings.Count(log.String(), "\n"), 1) }()
	var handled []registry.Hostname
	services.AppendServiceHandler(func(_, s *registry.Service, _ registry.Event) { handled = append(handled, s.Hostname) })
	if _, err := cache.Create(entry("a", nil, "a.com")); err != nil {
		t.Fatal(err)
	}
	cache.Drain()
	diff(t, "handled", handled, []registry.Hostname{"a.com"})
	stop := make(chan struct{})
	close(stop)
	services.Run(stop)
	if got, want := fmt.Sprint(services.Flush(t.Context())), "flush registry External/c: event delivery has stopped"; got != want {
		t.Errorf("Flush after Run = %q, want %q", got, want)
	}
}

// TestPanic: a panic of a handler or of the updater costs that call; the others are
// made, and each is logged with its stack.
func TestPanic(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	s := newSystem(t, serviceentry.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	logged := func(what, stack string, times int) {
		t.Helper()
		if n := strings.Count(log.String(), what); n != times || !strings.Contains(log.String(), stack) {
			t.Errorf("%d records of %s, want %d with %s: %s", n, what, times, stack, log.String())
		}
		log.Reset()
	}
	var seen []string
	s.registry.AppendServiceHandler(func(_, _ *registry.Service, _ registry.Event) { panic("handler") })
	s.registry.AppendServiceHandler(func(_, curr *registry.Service, _ registry.Event) {
		seen = append(seen, string(curr.Hostname))
	})
	s.apply(entry("a", nil, "a.com", "1.1.1.1"))
	diff(t, "handled", seen, []string{"a.com"})
	logged(`what="event handler" error="panic: handler" registry=External`, "lifecycle_test.go", 1)
	s.recorder.take()

	s.recorder.during = func(string) { panic("updater") }
	s.apply(entry("b", nil, "b.com", "1.1.1.2"))
	s.recorder.during = nil
	diff(t, "handled", seen, []string{"a.com", "b.com"})
	logged(`what=updater error="panic: updater" registry=External`, "lifecycle_test.go", 3)
	s.expect("panics of the updater", "service ns/b.com add", "eds ns/b.com [1.1.1.2:80]", "config service ServiceEntry/ns/b.com")
	s.apply(entry("c", nil, "c.com"))
	s.expect("after panics of the updater", "service ns/c.com add", "config service ServiceEntry/ns/c.com")
}

// interrupting is an updater whose batches end in a panic, before or after what they
// publish.
type interrupting struct {
	xdsupdate.Discard
	before bool
}

func (u interrupting) UpdateBatch(publish func(xdsupdate.XDSUpdater)) {
	if u.before {
		panic("before")
	}
	publish(u)
	panic("after")
}

// TestBatchPanic: what is published within a batch of an updater is seen and handled
// once if the batch panics.
func TestBatchPanic(t *testing.T) {
	t.Parallel()
	for _, before := range []bool{true, false} {
		cache := memory.NewController(memory.Make(istio.Schemas()))
		services := serviceentry.New(cache, interrupting{before: before})
		handled := 0
		services.AppendServiceHandler(func(_, _ *registry.Service, _ registry.Event) { handled++ })
		if _, err := cache.Create(entry("a", nil, "a.com")); err != nil {
			t.Fatal(err)
		}
		cache.Drain()
		diff(t, "services", len(services.Services()), 1)
		diff(t, "handled", handled, 1)
	}
}

// TestSubscribeWhileBusy: a handler that registers while a batch is being
// reported gets each service once.
func TestSubscribeWhileBusy(t *testing.T) {
	t.Parallel()
	s := newSystem(t, serviceentry.Options{})
	s.registry.AppendServiceHandler(func(_, _ *registry.Service, _ registry.Event) {})
	var services, workloads []string
	s.recorder.during = func(string) {
		s.recorder.during = nil
		s.registry.AppendServiceHandler(func(_, curr *registry.Service, e registry.Event) {
			services = append(services, e.String()+" "+string(curr.Hostname))
		})
		s.registry.AppendWorkloadHandler(func(w *registry.WorkloadInstance, e registry.Event) {
			workloads = append(workloads, e.String()+" "+w.Name)
		})
		// This comes after the registration.
		s.write(entry("b", nil, "b.com"))
		s.cache.Drain()
	}
	s.write(entry("a", nil, "a.com"), workloadEntry("w", "1.1.1.1", nil))
	s.cache.Drain()
	diff(t, "services", services, []string{"add a.com", "add b.com"})
	diff(t, "workloads", workloads, []string{"add w"})
}

// TestCancelInTheMidst: a handler that is cancelled while a batch is being
// reported gets no further change of it.
func TestCancelInTheMidst(t *testing.T) {
	t.Parallel()
	s := newSystem(t, serviceentry.Options{})
	var seen []string
	var cancel func()
	cancel = s.registry.SubscribeServices(func(_, curr *registry.Service, _ registry.Event) {
		seen = append(seen, string(curr.Hostname))
		cancel()
	})
	s.write(entry("a", nil, "a.com"), entry("b", nil, "b.com"))
	s.cache.Drain()
	diff(t, "seen", seen, []string{"a.com"})
}

// borrowing is a cache that takes back the slices that it hands to handlers.
type borrowing struct{ configstore.ConfigStoreCache }

func (b borrowing) Subscribe(
	kinds []configstore.GroupVersionKind, handler configstore.BatchHandler,
) (objects []*configstore.Config, cancel func()) {
	inner, _ := b.ConfigStoreCache.(configstore.Subscriber)
	return inner.Subscribe(kinds, func(changes []configstore.Change) {
		lent := slices.Clone(changes)
		handler(lent)
		clear(lent)
	})
}

// TestBorrowedChanges: configs that come while the registry is busy are copied.
func TestBorrowedChanges(t *testing.T) {
	t.Parallel()
	cache, recorder := memory.NewController(memory.Make(istio.Schemas())), newRecorder(t)
	r := serviceentry.New(borrowing{cache}, recorder)
	create := func(c configstore.Config) {
		if _, err := cache.Create(c); err != nil {
			t.Error(err)
		}
		cache.Drain()
	}
	create(entry("a", selecting, "a.com"))
	recorder.during = func(string) {
		recorder.during = nil
		create(entry("b", nil, "b.com"))
	}
	r.WorkloadInstanceHandler(pod("p", nil, "1.1.1.1"), registry.EventAdd)
	diff(t, "services", len(r.Services()), 2)
}
