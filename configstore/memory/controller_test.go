// SPDX-License-Identifier: Apache-2.0

package memory_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/memory"
)

func newController() (*memory.Store, *memory.Controller) {
	s := newStore()
	return s, memory.NewController(s)
}

func run(c *memory.Controller) (end func()) {
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() { c.Run(stop) })
	return sync.OnceFunc(func() {
		close(stop)
		wg.Wait()
	})
}

func TestEventObjects(t *testing.T) {
	s, c := newController()
	var calls []configstore.Change
	c.RegisterEventHandler(widget(), func(old, curr configstore.Config, e configstore.Event) {
		calls = append(calls, configstore.Change{Event: e, Old: &old, Curr: &curr})
	})
	create(t, c, object(widget(), "a", "x", "1"))
	added := s.Get(widget(), "x", "a")
	update(t, s, object(widget(), "a", "x", "2"))
	updated := s.Get(widget(), "x", "a")
	if err := c.Delete(widget(), "x", "a", nil); err != nil {
		t.Fatal(err)
	}
	c.Drain()
	zero := configstore.Config{}
	for i, want := range []configstore.Change{
		{Event: configstore.EventAdd, Old: &zero, Curr: added},
		{Event: configstore.EventUpdate, Old: added, Curr: updated},
		{Event: configstore.EventDelete, Old: &zero, Curr: updated},
	} {
		got := calls[i]
		if got.Event != want.Event || !got.Old.Equal(*want.Old) || !got.Curr.Equal(*want.Curr) ||
			got.Old.Spec != want.Old.Spec || got.Curr.Spec != want.Curr.Spec {
			t.Errorf("call %d is %+v, want %+v", i, got, want)
		}
	}
	if len(calls) != 3 {
		t.Errorf("%d calls, want 3", len(calls))
	}
}

func TestSubscribe(t *testing.T) {
	s, c := newController()
	create(t, s, object(widget(), "b", "1", "1"))
	create(t, s, object(gadget(), "a", "1", "1"))
	create(t, s, object(widget(), "a", "1", "1"))
	var got []string
	// A kind named twice, once by an alias, is one kind.
	kinds := []configstore.GroupVersionKind{widget(), gadget(), widgetAlias()}
	objects, cancel := c.Subscribe(kinds, func(changes []configstore.Change) {
		var batch []string
		for _, x := range changes {
			batch = append(batch, fmt.Sprintf("%v %s@%d", x.Event, x.Curr.Key().Object(), x.Revision))
		}
		got = append(got, strings.Join(batch, ", "))
	})
	create(t, s, object(node(), "", "n", "1"))
	update(t, s, object(gadget(), "a", "1", "2"))
	c.Drain()
	want(t, &got, "update Gadget a/1@5")
	names := []string{}
	for _, o := range objects {
		names = append(names, o.Key().Object()+"@"+o.ResourceVersion)
	}
	want(t, &names, "Widget a/1@3", "Widget b/1@1", "Gadget a/1@2")
	if err := s.Delete(widget(), "1", "b", nil); err != nil {
		t.Fatal(err)
	}
	c.Drain()
	want(t, &got, "delete Widget b/1@6")
	create(t, s, object(node(), "", "m", "1"))
	c.Drain()
	want(t, &got)
	cancel()
	cancel()
	update(t, s, object(gadget(), "a", "1", "3"))
	c.Drain()
	want(t, &got)
}

// A handler that is registered while events are queued gets the current state and the later
// changes, without duplicate or gap.
func TestLateRegistration(t *testing.T) {
	s, c := newController()
	got := record(c)
	create(t, s, object(widget(), "a", "x", "1"))
	create(t, s, object(widget(), "a", "y", "1"))
	late := record(c)
	update(t, s, object(widget(), "a", "x", "2"))
	if err := s.Delete(widget(), "y", "a", nil); err != nil {
		t.Fatal(err)
	}
	later := record(c)
	c.Drain()
	want(t, got, "add Widget a/x@1", "add Widget a/y@2", "update Widget a/x@3 was 1", "delete Widget a/y@2")
	want(t, late, "add Widget a/x@1", "add Widget a/y@2", "update Widget a/x@3 was 1", "delete Widget a/y@2")
	want(t, later, "add Widget a/x@3")
}

func TestSeveralControllers(t *testing.T) {
	s, c := newController()
	d := memory.NewController(s)
	gotC, gotD := record(c), record(d)
	create(t, c, object(widget(), "a", "x", "1"))
	update(t, d, object(widget(), "a", "x", "2"))
	create(t, s, object(gadget(), "a", "x", "1"))
	c.Drain()
	events := []string{"add Widget a/x@1", "update Widget a/x@2 was 1", "add Gadget a/x@3"}
	want(t, gotC, events...)
	want(t, gotD)
	end := run(d)
	if err := d.Flush(t.Context()); err != nil {
		t.Error(err)
	}
	end()
	want(t, gotD, events...)
	// The one that has ended gets nothing, and costs nothing; the other goes on.
	create(t, s, object(widget(), "a", "y", "1"))
	c.Drain()
	d.Drain()
	want(t, gotC, "add Widget a/y@4")
	want(t, gotD)
}

func TestHandlerMayDoAnything(t *testing.T) {
	s, c := newController()
	var got []string
	c.RegisterEventHandler(widget(), func(_, curr configstore.Config, e configstore.Event) {
		got = append(got, fmt.Sprintf("%v %s", e, value(&curr)))
		if value(&curr) != "1" {
			return
		}
		// It reads the notified object, writes, lists, registers and drains.
		if list := s.List(widget(), "a"); len(list) != 1 {
			t.Errorf("the handler of the first object sees %d", len(list))
		}
		update(t, c, object(widget(), "a", "x", "2"))
		c.RegisterEventHandler(gadget(), func(_, curr configstore.Config, e configstore.Event) {
			got = append(got, fmt.Sprintf("gadget %v %s", e, value(&curr)))
		})
		create(t, c, object(gadget(), "a", "x", "3"))
		c.Drain()
		s.Snapshot()
	})
	create(t, s, object(widget(), "a", "x", "1"))
	c.Drain()
	want(t, &got, "add 1", "update 2", "gadget add 3")
}

// Writers do not wait for a handler that blocks, before Run and after.
func TestBlockedHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, c := newController()
		var n int
		release := make(chan struct{})
		c.RegisterEventHandler(widget(), func(_, _ configstore.Config, _ configstore.Event) {
			<-release
			n++
		})
		fill(t, s, 500)
		defer run(c)()
		synctest.Wait()
		fill(t, s, 500)
		if n != 0 || len(s.List(widget(), "")) != 1000 {
			t.Error("the handler did not block, or the store did")
		}
		close(release)
		synctest.Wait()
		if n != 1000 {
			t.Errorf("%d events after the handler was released, want 1000", n)
		}
	})
}

func TestPanickingHandler(t *testing.T) {
	var log bytes.Buffer
	s := newStore()
	c := memory.NewController(s, memory.ControllerOptions{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	c.RegisterEventHandler(widget(), func(_, curr configstore.Config, _ configstore.Event) { panic("handler: " + curr.Name) })
	c.Subscribe([]configstore.GroupVersionKind{widget()}, func([]configstore.Change) { panic("batch") })
	got := record(c)
	create(t, s, object(widget(), "a", "x", "1"))
	create(t, s, object(widget(), "a", "y", "1"))
	c.Drain()
	want(t, got, "add Widget a/x@1", "add Widget a/y@2")
	for _, record := range []string{
		`what="event handler" error="panic: handler: x" events=1 event=add object="Widget a/x"`,
		`error="panic: handler: y" events=1`, `error="panic: batch" events=2`,
	} {
		if strings.Count(log.String(), record) != 1 {
			t.Errorf("no %s in the log: %s", record, log.String())
		}
	}
}

// A validator that panics refuses its object, a function for warnings that panics
// costs nothing.
func TestPanickingFunctions(t *testing.T) {
	schema := configstore.Schema{
		GroupVersionKind: widget(), Plural: "widgets", Spec: &wrapperspb.StringValue{},
		Validate: func(c configstore.Config) (warnings, violations []configstore.Violation) {
			if c.Name == "bad" {
				panic("validator")
			}
			return []configstore.Violation{{Message: "warning"}}, nil
		},
	}
	s := memory.Make(configstore.NewSchemasBuilder().MustAdd(schema).Build(), memory.Options{
		OnWarning: func(configstore.ConfigKey, []configstore.Violation) { panic("OnWarning") },
	})
	_, err := s.Create(object(widget(), "a", "bad", "1"))
	if !errors.Is(err, configstore.ErrInvalid) || !strings.Contains(err.Error(), "the validator ended in a panic: validator") {
		t.Errorf("Create = %v", err)
	}
	if _, err := s.Create(object(widget(), "a", "good", "1")); err != nil {
		t.Errorf("Create = %v", err)
	}
	if s.Get(widget(), "bad", "a") != nil || s.Get(widget(), "good", "a") == nil {
		t.Error("what is stored is not what was valid")
	}
}

func TestHasSynced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, c := newController()
		delivered := false
		var mu sync.Mutex
		c.RegisterHasSyncedHandler(func() bool {
			mu.Lock()
			defer mu.Unlock()
			return delivered
		})
		release := make(chan struct{})
		c.RegisterEventHandler(widget(), func(_, _ configstore.Config, _ configstore.Event) { <-release })
		if c.HasSynced() {
			t.Error("synced before Run")
		}
		defer run(c)()
		synctest.Wait()
		if c.HasSynced() {
			t.Error("synced before the source")
		}
		create(t, s, object(widget(), "a", "x", "1"))
		mu.Lock()
		delivered = true
		mu.Unlock()
		synctest.Wait()
		if c.HasSynced() {
			t.Error("synced while a handler works on the initial state")
		}
		close(release)
		synctest.Wait()
		if !c.HasSynced() {
			t.Error("not synced")
		}
	})
}

func TestHasSyncedWithoutHandlersAndSource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := newController()
		if c.HasSynced() {
			t.Error("synced before Run")
		}
		defer run(c)()
		synctest.Wait()
		if !c.HasSynced() {
			t.Error("not synced after Run")
		}
	})
}

func TestFlushAfterTheEnd(t *testing.T) {
	_, c := newController()
	record(c)
	run(c)()
	if err := c.Flush(t.Context()); err == nil || errors.Unwrap(err) == nil {
		t.Errorf("Flush after Run = %v, want an error", err)
	}
}

func TestRunTwice(t *testing.T) {
	_, c := newController()
	run(c)()
	if got, want := panicOf(func() { c.Run(nil) }), "memory: Run called twice"; got != want {
		t.Errorf("a second Run panics with %q, want %q", got, want)
	}
}

func TestUnknownKindPanics(t *testing.T) {
	_, c := newController()
	none := configstore.GroupVersionKind{Group: "g", Version: "v", Kind: "None"}
	for name, f := range map[string]func(){
		"RegisterEventHandler": func() { c.RegisterEventHandler(none, nil) },
		"Subscribe":            func() { c.Subscribe([]configstore.GroupVersionKind{widget(), none}, nil) },
	} {
		if got, want := panicOf(f), "memory: "+name+": unknown kind g/v/None"; got != want {
			t.Errorf("panic %q, want %q", got, want)
		}
	}
}

// TestNilHandlerPanics: where it is registered, not where it would be called.
func TestNilHandlerPanics(t *testing.T) {
	_, c := newController()
	for name, f := range map[string]func(){
		"RegisterEventHandler": func() { c.RegisterEventHandler(widget(), nil) },
		"Subscribe":            func() { c.Subscribe([]configstore.GroupVersionKind{widget()}, nil) },
	} {
		if got, want := panicOf(f), "memory: a subscription needs exactly one handler"; got != want {
			t.Errorf("%s(nil) panics with %v, want %q", name, got, want)
		}
	}
}

func TestSlowHandlerIsLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var text bytes.Buffer
		logger := slog.New(slog.NewTextHandler(&text, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		}}))
		s := newStore()
		c := memory.NewController(s, memory.ControllerOptions{Logger: logger, SlowHandler: 100 * time.Millisecond})
		calls := 0
		c.RegisterEventHandler(widget(), func(_, curr configstore.Config, _ configstore.Event) {
			calls++
			if curr.Name == "slow" {
				time.Sleep(time.Second)
			}
		})
		create(t, s, object(widget(), "a", "slow", "1"))
		create(t, s, object(widget(), "a", "quick", "1"))
		c.Drain()
		want := `level=WARN msg="event handler is slow" took=1s events=1 event=add object="Widget a/slow"` + "\n"
		if text.String() != want || calls != 2 {
			t.Errorf("%d calls; logged %q, want %q", calls, text.String(), want)
		}
	})
}
