// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/configstore/memory"
	"github.com/pilotkit/pilotkit/configstore/storetest"
)

// TestSuite runs the suites of stores and caches, on a cache without a file: that of
// stores while it runs, as writes show by the events of the source.
func TestSuite(t *testing.T) {
	subject := func(tb testing.TB, schemas configstore.Schemas, running bool) storetest.Subject {
		tb.Helper()
		source := memory.NewController(memory.Make(schemas))
		c := New(source, filepath.Join(tb.TempDir(), "checkpoint"))
		if running {
			stop, done := make(chan struct{}), make(chan struct{})
			go func() {
				defer close(done)
				c.Run(stop)
			}()
			tb.Cleanup(func() {
				close(stop)
				<-done
			})
		}
		return storetest.Subject{Store: c, Batches: source, CatchUp: func() {
			_ = source.Flush(tb.Context()) // which has nothing to wait for when Run has ended
			c.goLive()
		}}
	}
	storetest.TestStore(t, func(tb testing.TB, schemas configstore.Schemas) storetest.Subject {
		tb.Helper()
		return subject(tb, schemas, true)
	})
	storetest.TestCache(t, func(tb testing.TB, schemas configstore.Schemas) storetest.Subject {
		tb.Helper()
		return subject(tb, schemas, false)
	})
}

// TestWarmStart: the content of the file is shown as long as the source is away; then the
// difference goes out, as one batch.
func TestWarmStart(t *testing.T) {
	path := saved(t, entry("a", "1"), entry("b", "1"), entry("c", "1"))
	s := newSource(t, false)
	c := New(s, path)
	e := record(c)
	if c.HasSynced() {
		t.Error("synced before the handlers have the content of the file")
	}
	c.Drain()
	if !c.HasSynced() || !c.Status().Stale || c.Status().Written.IsZero() || c.Status().Refused != nil {
		t.Errorf("after the file: synced %t, %+v", c.HasSynced(), c.Status())
	}
	expectContents(t, "the file", c, "a 1", "b 1", "c 1")
	e.expect(t, "the file", []string{"add a 1", "add b 1", "add c 1"})
	// The source comes back slowly.
	s.put(t, entry("c", "1"), entry("x", "1"))
	c.Drain()
	s.put(t, entry("b", "2"), entry("d", "1"))
	if err := s.Delete(istio.ServiceEntry, "x", "ns", nil); err != nil {
		t.Fatal(err)
	}
	c.Drain()
	expectContents(t, "a source that has not synced", c, "a 1", "b 1", "c 1")
	e.expect(t, "a source that has not synced")
	s.synced = true
	c.Drain()
	expectContents(t, "the source", c, "b 2", "c 1", "d 1")
	e.expect(t, "the source", []string{"delete a 1", "update b 2", "add d 1"})
	if c.Status().Stale {
		t.Error("stale although the source has synced")
	}
	s.put(t, entry("b", "3"), entry("e", "1"))
	c.Drain()
	e.expect(t, "a batch of the source", []string{"update b 3", "add e 1"})
	if err := s.Delete(istio.ServiceEntry, "e", "ns", nil); err != nil {
		t.Fatal(err)
	}
	c.Drain()
	e.expect(t, "a deletion", []string{"delete e 1"})
}

// TestSameContent: a restart without a change is no event.
func TestSameContent(t *testing.T) {
	objects := []configstore.Config{entry("a", "1"), entry("b", "1")}
	c := New(newSource(t, true, objects...), saved(t, objects...))
	c.shown.Drain() // the file alone
	before := c.List(istio.ServiceEntry, "")
	e := record(c)
	c.Drain()
	e.expect(t, "the same content", []string{"add a 1", "add b 1"})
	if after := c.List(istio.ServiceEntry, ""); after[0] != before[0] || after[1] != before[1] {
		t.Error("objects were replaced that have not changed")
	}
}

// plain is a cache without abilities.
type plain struct{ configstore.ConfigStoreCache }

// TestPlainCache: a cache that knows neither batches nor Drain can be wrapped as well.
func TestPlainCache(t *testing.T) {
	path := saved(t, entry("a", "1"), entry("b", "1"))
	s := newSource(t, false, entry("b", "2"))
	c := New(plain{s}, path)
	c.Drain()
	s.Drain()
	expectContents(t, "before it has synced", c, "a 1", "b 1")
	s.synced = true
	c.Drain()
	expectContents(t, "when it has synced", c, "b 2")
	s.put(t, entry("c", "1"))
	s.Drain()
	expectContents(t, "later", c, "b 2", "c 1")
}

// TestEmptySource: a source that has synced without objects has none.
func TestEmptySource(t *testing.T) {
	c := New(newSource(t, true), saved(t, entry("a", "1")))
	c.Drain()
	expectContents(t, "an empty source", c)
}

// TestWithoutFile: there is nothing to show until the source has synced.
func TestWithoutFile(t *testing.T) {
	s := newSource(t, false, entry("a", "1"))
	path := filepath.Join(t.TempDir(), "checkpoint")
	c := New(s, path)
	c.Drain()
	if err := c.Save(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(path); c.HasSynced() || !errors.Is(err, os.ErrNotExist) || c.Status() != (Status{}) {
		t.Errorf("synced %t, file %v, %+v", c.HasSynced(), err, c.Status())
	}
	s.synced = true
	c.Drain()
	if !c.HasSynced() {
		t.Error("not synced, although the source has")
	}
	expectContents(t, "the source", c, "a 1")
}

// TestEverythingIsKept: loaded objects equal the saved ones in all fields.
func TestEverythingIsKept(t *testing.T) {
	bare := configstore.Config{Meta: configstore.Meta{GroupVersionKind: istio.ServiceEntry, Name: "z", Namespace: "ns"}, Spec: entry("z", "").Spec}
	s := newSource(t, true, entry("a", "1"), bare)
	path := filepath.Join(t.TempDir(), "checkpoint")
	c := New(s, path)
	c.Drain()
	if err := c.Save(); err != nil {
		t.Fatal(err)
	}
	loaded := New(newSource(t, false), path)
	want, got := s.List(istio.ServiceEntry, ""), loaded.List(istio.ServiceEntry, "")
	if len(got) != len(want) {
		t.Fatalf("%d objects, want %d", len(got), len(want))
	}
	for i := range want {
		if !got[i].Equal(*want[i]) {
			t.Errorf("loaded %v, want %v", got[i], want[i])
		}
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("file %v, %v; want one for its owner", info, err)
	}
}

// TestRun: the file follows the source while Run runs, is not written without a change,
// and is written in the end.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "checkpoint")
		s := newSource(t, true, entry("a", "1"))
		d := &countingDisk{}
		c := newCache(s, path, d, Options{Interval: time.Minute})
		stop := make(chan struct{})
		var running sync.WaitGroup
		running.Go(func() { c.Run(stop) })
		time.Sleep(time.Second)
		expectFile(t, "after the sync", path, "a 1")
		s.put(t, entry("b", "1"))
		time.Sleep(time.Minute)
		expectFile(t, "a minute later", path, "a 1", "b 1")
		time.Sleep(time.Hour)
		if d.created != 2 {
			t.Errorf("written %d times, want 2", d.created)
		}
		s.put(t, entry("c", "1"))
		synctest.Wait()
		close(stop)
		running.Wait()
		expectFile(t, "in the end", path, "a 1", "b 1", "c 1")
		defer func() {
			if recover() == nil {
				t.Error("a second Run returned")
			}
		}()
		c.Run(stop)
	})
}

// countingDisk counts files.
type countingDisk struct {
	osDisk
	created int
}

func (d *countingDisk) create(path string) (diskFile, error) {
	d.created++
	return d.osDisk.create(path)
}

func expectFile(t *testing.T, when, path string, want ...string) {
	t.Helper()
	c := New(newSource(t, false), path)
	if err := c.Status().Refused; err != nil {
		t.Error(err)
	}
	expectContents(t, when, c, want...)
}

// TestUnwritable: a failed write is reported, logged once, and retried.
func TestUnwritable(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "missing")
	var log bytes.Buffer
	c := New(newSource(t, true, entry("a", "1")), filepath.Join(dir, "checkpoint"),
		Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	c.Drain()
	for range 2 {
		if err := c.Save(); !errors.Is(err, os.ErrNotExist) || !errors.Is(c.Status().Err, os.ErrNotExist) {
			t.Errorf("error %v, %+v", err, c.Status())
		}
	}
	if n := strings.Count(log.String(), "is not written"); n != 1 {
		t.Errorf("logged %d times:\n%s", n, log.String())
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := c.Save(); err != nil || c.Status().Err != nil || c.Status().Written.IsZero() {
		t.Errorf("error %v, %+v", err, c.Status())
	}
}

// TestWrites: they go to the source, with its errors.
func TestWrites(t *testing.T) {
	source := memory.NewController(memory.Make(istio.Schemas()))
	c := New(source, filepath.Join(t.TempDir(), "checkpoint"))
	created := entry("a", "1")
	if _, err := c.Create(created); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Create(created); !errors.Is(err, configstore.ErrAlreadyExists) {
		t.Errorf("error %v", err)
	}
	if err := c.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	expectContents(t, "a write", c, "a 1")
	stale := *c.Get(istio.ServiceEntry, "a", "ns")
	if _, err := c.Update(entry("a", "2")); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Update(stale); !errors.Is(err, configstore.ErrConflict) {
		t.Errorf("error %v", err)
	}
	if err := c.Delete(istio.ServiceEntry, "a", "ns", nil); err != nil {
		t.Error(err)
	}
	c.Drain()
	if diff := cmp.Diff([]string(nil), contents(c)); diff != "" {
		t.Error(diff)
	}
}
