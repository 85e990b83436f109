// SPDX-License-Identifier: Apache-2.0

package bridge_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/bridge"
	"github.com/pilotkit/pilotkit/registry/memory"
	"github.com/pilotkit/pilotkit/registry/registrytest"
)

// TestInstance runs the suite of registries on a bridge.
func TestInstance(t *testing.T) {
	registrytest.TestInstance(t, func(tb testing.TB) registrytest.Subject {
		tb.Helper()
		c := newCatalogue()
		b := bridge.New(c, bridge.Options{Cluster: "east", MaxDrop: 1})
		return registrytest.Subject{
			Registry: b,
			Set: func(s *registry.Service, endpoints []*registry.Endpoint) {
				c.set(bridge.Record{Service: s, Endpoints: endpoints})
			},
			Remove: func(hostname registry.Hostname, namespace string) { c.removeKey(namespace + "/" + string(hostname)) },
			// Handlers may have changed the catalogue meanwhile.
			CatchUp: func() {
				for before := -1; before != c.changes(); {
					before = c.changes()
					if err := b.Sync(context.Background()); err != nil {
						tb.Error(err)
					}
				}
			},
		}
	})
}

func TestList(t *testing.T) {
	c, u := newCatalogue("a", "b"), &calls{}
	b := bridge.New(c, bridge.Options{Provider: "Consul", Cluster: "east", Updater: u})
	if b.HasSynced() || b.Status().Stale() || !b.Status().Listed.IsZero() {
		t.Errorf("before the first list: synced %t, %+v", b.HasSynced(), b.Status())
	}
	list(t, b)
	if got := b.Status(); !b.HasSynced() || got.Stale() || got.Listed.IsZero() || got.Err != nil {
		t.Errorf("after the first list: synced %t, %+v", b.HasSynced(), got)
	}
	if b.Provider() != "Consul" || b.Cluster() != "east" {
		t.Errorf("%s/%s", b.Provider(), b.Cluster())
	}
	expectCalls(t, "the first list", u, "svc a add", "svc b add", "eds a [1.1.1.1]", "eds b [1.1.1.1]")
	list(t, b)
	expectCalls(t, "the same list", u)
	c.set(record("b", "2.2.2.2", "1.1.1.1"), record("c"))
	c.remove("a")
	list(t, b)
	expectCalls(t, "changes", u, "svc a delete", "svc c add", "eds b [1.1.1.1 2.2.2.2]")
	expectShown(t, "in the end", b, "b 1.1.1.1 2.2.2.2", "c")
}

// TestErrors: neither an error nor a panic changes the content, and the status reports it.
func TestErrors(t *testing.T) {
	var log bytes.Buffer
	c, u := newCatalogue("a"), &calls{}
	b := bridge.New(c, bridge.Options{Updater: u, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	list(t, b)
	u.take()
	broken := errors.New("no route to host")
	c.fail(broken)
	for n := 1; n <= 3; n++ {
		if err := b.Sync(t.Context()); !errors.Is(err, broken) {
			t.Errorf("error %v, want one of the catalogue", err)
		}
		if s := b.Status(); !s.Stale() || !errors.Is(s.Err, broken) || s.Failures != n || s.Listed.After(s.StaleSince) {
			t.Errorf("status %+v", s)
		}
	}
	c.fail(nil)
	c.panics = true
	if err := b.Sync(t.Context()); err == nil || !strings.Contains(err.Error(), "defect of the catalogue") {
		t.Errorf("error %v, want the panic", err)
	}
	expectCalls(t, "errors", u)
	expectShown(t, "errors", b, "a 1.1.1.1")
	if !b.HasSynced() {
		t.Error("HasSynced became false")
	}
	c.panics = false
	list(t, b)
	if s := b.Status(); s.Stale() || s.Err != nil || s.Failures != 0 {
		t.Errorf("after a list: %+v", s)
	}
	for text, want := range map[string]int{"catalogue is stale": 1, "msg=panic": 1, "current again": 1} {
		if got := strings.Count(log.String(), text); got != want {
			t.Errorf("%d times %q in the log, want %d:\n%s", got, text, want, log.String())
		}
	}
}

// TestEmptyAfterError: an empty list after an error is never the end of everything.
func TestEmptyAfterError(t *testing.T) {
	c, u := newCatalogue("a", "b"), &calls{}
	b := bridge.New(c, bridge.Options{Updater: u, Confirmations: 2})
	list(t, b)
	u.take()
	c.fail(errors.New("away"))
	_ = b.Sync(t.Context())
	c.fail(nil)
	c.replace()
	for range 10 {
		if err := b.Sync(t.Context()); !errors.Is(err, bridge.ErrHeld) || !b.Status().Stale() {
			t.Fatalf("error %v, status %+v", err, b.Status())
		}
	}
	expectCalls(t, "empty lists after an error", u)
	c.replace("a", "b")
	list(t, b)
	expectCalls(t, "the content is back", u)

	// Without an error, lists can confirm that everything has gone.
	c.replace()
	hold(t, b, 2)
	list(t, b)
	expectShown(t, "confirmed", b)

	// The program can, too.
	c.replace("a")
	list(t, b)
	c.fail(errors.New("away"))
	_ = b.Sync(t.Context())
	c.fail(nil)
	c.replace()
	hold(t, b, 1)
	b.Accept()
	list(t, b)
	expectShown(t, "accepted", b)
}

// TestEmptyAtStart: a catalogue without content can be followed, but after an error that
// has to be confirmed.
func TestEmptyAtStart(t *testing.T) {
	b := bridge.New(newCatalogue())
	list(t, b)
	c := newCatalogue()
	c.fail(errors.New("away"))
	b = bridge.New(c, bridge.Options{Confirmations: 2})
	_ = b.Sync(t.Context())
	c.fail(nil)
	hold(t, b, 2)
	if got, want := b.Status().Err.Error(), "the list is held back: the first list is empty, after an error; lists that have to confirm it: 1"; got != want {
		t.Errorf("error %q, want %q", got, want)
	}
	if b.HasSynced() {
		t.Error("synced by an empty list after an error")
	}
	list(t, b)
	if !b.HasSynced() {
		t.Error("not synced by a confirmed list")
	}
}

// TestShrink: a list that drops much has to be confirmed, and is not visible before.
func TestShrink(t *testing.T) {
	many := []string{"a", "b", "c", "d", "e", "f", "g", "h"}
	start := func() (*catalogue, *bridge.Bridge, *calls) {
		c, u := newCatalogue(many...), &calls{}
		b := bridge.New(c, bridge.Options{Updater: u, MaxDrop: 0.5, Confirmations: 3})
		list(t, b)
		u.take()
		return c, b, u
	}
	t.Run("half", func(t *testing.T) {
		c, b, _ := start()
		c.replace(many[:4]...)
		list(t, b)
	})
	t.Run("more", func(t *testing.T) {
		c, b, u := start()
		c.replace("a", "b", "new")
		hold(t, b, 3)
		expectCalls(t, "while it is held back", u)
		list(t, b)
		if got := len(b.Services()); got != 3 {
			t.Errorf("%d services, want 3", got)
		}
	})
	t.Run("other names", func(t *testing.T) {
		c, b, _ := start()
		c.replace("i", "j", "k", "l", "m", "n", "o", "p")
		hold(t, b, 3)
		list(t, b)
	})
	t.Run("back again", func(t *testing.T) {
		c, b, u := start()
		c.replace("a")
		hold(t, b, 3)
		c.replace(many...)
		list(t, b)
		expectCalls(t, "it was a mistake", u)
		c.replace("a")
		hold(t, b, 3)
	})
	t.Run("a list that drops still more is no confirmation", func(t *testing.T) {
		c, b, _ := start()
		c.replace("a", "b", "c")
		hold(t, b, 3)
		c.replace("a")
		hold(t, b, 3)
		list(t, b)
		expectShown(t, "confirmed", b, "a 1.1.1.1")
	})
	t.Run("endpoints", func(t *testing.T) {
		c, b, u := start()
		for _, name := range many {
			c.set(record(name))
		}
		hold(t, b, 3)
		expectCalls(t, "while it is held back", u)
		list(t, b)
		expectShown(t, "confirmed", b, many...)
	})
	t.Run("endpoints that are replaced", func(t *testing.T) {
		c, b, _ := start()
		for _, name := range many {
			c.set(record(name, "2.2.2.2"))
		}
		list(t, b)
	})
}

// TestTakenDropIsLogged: the acceptance of a list that drops much, confirmed or by Accept, is
// logged.
func TestTakenDropIsLogged(t *testing.T) {
	var log bytes.Buffer
	c := newCatalogue("a", "b", "c")
	b := bridge.New(c, bridge.Options{Confirmations: 1, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	list(t, b)
	c.replace("a")
	hold(t, b, 1)
	if strings.Contains(log.String(), "is accepted") {
		t.Errorf("a list that is held back is said to be accepted:\n%s", log.String())
	}
	list(t, b)
	c.replace()
	b.Accept()
	list(t, b)
	for _, want := range []string{"dropped=2 before=\"3 services with 3 endpoints\" now=\"1 services with 1 endpoints\"", "dropped=1 before="} {
		if strings.Count(log.String(), want) != 1 {
			t.Errorf("the log has not %q once:\n%s", want, log.String())
		}
	}
}

// TestDefects: a record with a defect keeps its last good state, hurts no others, and is
// reported by name and field.
func TestDefects(t *testing.T) {
	var log bytes.Buffer
	c, u := newCatalogue("a", "b", "c"), &calls{}
	b := bridge.New(c, bridge.Options{Updater: u, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	list(t, b)
	u.take()
	a, d := record("a", "2.2.2.2"), record("d", "2.2.2.2")
	a.Service.Ports[0].Number = 70000
	d.Endpoints[0].Addresses = []string{"somewhere"}
	unreadable := errors.New("no JSON")
	c.set(a, d, record("b", "3.3.3.3"), bridge.Record{Service: record("c").Service, Err: unreadable})
	for range 2 {
		list(t, b)
	}
	expectCalls(t, "defects", u, "eds b [3.3.3.3]")
	expectShown(t, "defects", b, "a 1.1.1.1", "b 3.3.3.3", "c 1.1.1.1")
	var got []string
	for _, defect := range b.Status().Defects {
		got = append(got, strings.Join([]string{string(defect.Hostname), defect.Namespace, defect.Field, defect.Error()}, "|"))
		if kept := defect.Hostname != "d"; defect.Kept != kept {
			t.Errorf("%v: kept %t", defect, defect.Kept)
		}
	}
	want := []string{
		"a|ns|ports[0].number|service ns/a: invalid: ports[0].number: 70000 is not in 1–65535",
		"c|ns||service ns/c: no JSON",
		`d|ns|endpoints[0].addresses[0]|service ns/d: invalid: endpoints[0].addresses[0]: "somewhere" is not an IP address`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("defects\n%q, want\n%q", got, want)
	}
	if all := b.Status().Defects; !errors.Is(all[0], memory.ErrInvalid) || !errors.Is(all[1], unreadable) {
		t.Errorf("defects %v", all)
	}
	c.set(record("a", "2.2.2.2"), record("c", "1.1.1.1"), record("d", "2.2.2.2"))
	list(t, b)
	expectShown(t, "mended", b, "a 2.2.2.2", "b 3.3.3.3", "c 1.1.1.1", "d 2.2.2.2")
	if defects := b.Status().Defects; len(defects) > 0 {
		t.Errorf("defects %v", defects)
	}
	for text, want := range map[string]int{"record has a defect": 3, "defect is gone": 3} {
		if got := strings.Count(log.String(), text); got != want {
			t.Errorf("%d times %q in the log, want %d:\n%s", got, text, want, log.String())
		}
	}
	// A service whose record has a defect goes when its record does.
	c.set(a)
	list(t, b)
	c.remove("a")
	list(t, b)
	expectShown(t, "removed", b, "b 3.3.3.3", "c 1.1.1.1", "d 2.2.2.2")
}

// repeated is a catalogue that lists a service twice, and none at all.
type repeated struct{}

// List implements bridge.Catalogue.
func (repeated) List(context.Context) (bridge.Listing, error) {
	return bridge.Listing{Records: []bridge.Record{record("a", "1.1.1.1"), {}, record("a", "2.2.2.2"), record("b")}}, nil
}

func TestRepeatedRecords(t *testing.T) {
	b := bridge.New(repeated{})
	list(t, b)
	expectShown(t, "twice", b, "a 1.1.1.1", "b")
	if got := b.Status().Defects; len(got) != 2 || got[0].Hostname != "" || got[1].Hostname != "a" {
		t.Errorf("defects %v", got)
	}
}

func list(t *testing.T, b *bridge.Bridge) {
	t.Helper()
	if err := b.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// hold demands that so many lists are held back.
func hold(t *testing.T, b *bridge.Bridge, lists int) {
	t.Helper()
	for i := range lists {
		if err := b.Sync(t.Context()); !errors.Is(err, bridge.ErrHeld) {
			t.Fatalf("list %d: error %v, want ErrHeld", i, err)
		}
	}
}

func expectCalls(t *testing.T, when string, u *calls, want ...string) {
	t.Helper()
	if got := u.take(); !slices.Equal(got, want) {
		t.Errorf("%s: the updater was called with %q, want %q", when, got, want)
	}
}
