// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto" // the codec
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/configstore/memory"
)

// TestDisconnected: everything stays, is marked as stale, and follows the first answer
// of the next stream, whether that has more or less.
func TestDisconnected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore()
		d, source, end := drive(t, store, only(istio.ServiceEntry))
		defer end()
		if s := source.Status(); !s.Stale() && s.Connected {
			t.Errorf("status %+v", s)
		}
		for _, next := range []string{"a b c", "b", "b c d", "d"} {
			before := names(store)
			d.open(1)
			synctest.Wait()
			if s := source.Status(); !s.Stale() || !s.Connected || s.Kinds[0].Answered {
				t.Errorf("status %+v", s)
			}
			if got := names(store); got != before {
				t.Errorf("the store has %q, want %q", got, before)
			}
			d.say("1", entries(t, strings.Fields(next)...)...)
			synctest.Wait()
			if got := names(store); got != next {
				t.Errorf("the store has %q, want %q", got, next)
			}
			if s := source.Status(); s.Stale() || s.Err != nil || s.Failures != 0 {
				t.Errorf("status %+v", s)
			}
			if s := source.SourceState(); s.Freshness != configstore.Fresh || !s.Synced || !s.Content.Equal(time.Now()) {
				t.Errorf("source state %+v", s)
			}
			time.Sleep(time.Hour)
			d.end()
			synctest.Wait()
			if s := source.Status(); !s.Stale() || s.Connected || status.Code(s.Err) != codes.Unavailable || s.Failures != 1 || !source.HasSynced() {
				t.Errorf("status %+v", s)
			}
			if s := source.SourceState(); s.Freshness != configstore.Stale || !s.StaleSince.Equal(time.Now()) || s.Err == nil ||
				!s.Content.Equal(s.StaleSince.Add(-time.Hour)) {
				t.Errorf("source state %+v", s)
			}
			if got := names(store); got != next {
				t.Errorf("the store has %q, want %q", got, next)
			}
		}
	})
}

// TestEmptyAnswer: the first answer on a stream deletes nothing if it is empty, unless it
// is confirmed, by another one or by time.
func TestEmptyAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore()
		d, source, end := drive(t, store, only(istio.ServiceEntry))
		defer end()
		held := func(want bool) {
			t.Helper()
			synctest.Wait()
			if got := source.Status().Kinds[0]; got.Held != want || got.Answered == want {
				t.Errorf("status %+v", got)
			}
			if got := names(store); (got == "a b") != want {
				t.Errorf("the store has %q", got)
			}
		}
		fill := func() {
			t.Helper()
			d.say("1", entries(t, "a", "b")...)
			d.end()
			d.open(1)
			if r := d.say("2"); r.GetErrorDetail() != nil || r.GetVersionInfo() != "2" {
				t.Errorf("reply %v", r)
			}
			held(true)
		}
		d.open(1)
		if d.say("0"); !source.HasSynced() {
			t.Error("an empty first answer without objects is held back")
		}
		fill()
		d.say("3") // a second one
		held(false)

		fill()
		time.Sleep(9 * time.Second)
		held(true)
		time.Sleep(time.Second)
		held(false)

		fill() // a stream that ends before
		time.Sleep(9 * time.Second)
		d.end()
		time.Sleep(time.Minute)
		if got := names(store); got != "a b" {
			t.Errorf("the store has %q", got)
		}
		d.open(1)
		d.say("4")
		held(true)
		d.say("5", entries(t, "a", "b")...) // it was a mistake
		time.Sleep(time.Minute)
		if got := names(store); got != "a b" {
			t.Errorf("the store has %q", got)
		}
	})
}

// TestBackoff: a server that takes streams and fails is asked less and less often. What
// it has applied, not that it has a connection, makes the source fast again.
func TestBackoff(t *testing.T) {
	for name, answers := range map[string]struct {
		resources []*anypb.Any
		fast      bool
	}{
		"nothing":          {},
		"a bad answer":     {resources: []*anypb.Any{{}}},
		"an empty answer":  {resources: []*anypb.Any{}, fast: true}, // of a server without objects
		"a complete state": {resources: entries(t, "a"), fast: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d, _, end := drive(t, newStore(), only(istio.ServiceEntry))
				defer end()
				start := time.Now()
				var gaps []time.Duration
				for range 15 {
					d.open(1)
					gaps = append(gaps, time.Since(start))
					start = time.Now()
					if answers.resources != nil {
						d.say("1", answers.resources...)
					}
					d.end()
				}
				last := gaps[len(gaps)-1]
				if answers.fast && last > 300*time.Millisecond || !answers.fast && (last < 30*time.Second || last > 45*time.Second) {
					t.Errorf("times between streams: %v", gaps)
				}
				if !answers.fast {
					for i, gap := range gaps[2:9] {
						if gap <= gaps[i+1] {
							t.Errorf("times between streams do not grow: %v", gaps)
							break
						}
					}
				}
			})
		})
	}
}

// TestUnavailable: a server that refuses each stream is tried ever more rarely, and then
// followed.
func TestUnavailable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore()
		d := &driver{refused: func(n int) error {
			if n <= 5 {
				return status.Error(codes.PermissionDenied, "who are you")
			}
			return nil
		}}
		d.init(t)
		source, end := d.run(store, only(istio.ServiceEntry))
		defer end()
		time.Sleep(time.Second)
		if s := source.Status(); s.Connected || s.Failures < 2 || !strings.Contains(s.Err.Error(), "who are you") {
			t.Errorf("status %+v", s)
		}
		d.open(1)
		d.say("1", entries(t, "a")...)
		if d.opened.Load() != 6 || names(store) != "a" {
			t.Errorf("%d streams, the store has %q", d.opened.Load(), names(store))
		}
	})
}

// TestTooLarge: a response that is too large ends the stream and changes nothing.
func TestTooLarge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore()
		o := only(istio.ServiceEntry)
		o.MaxResponseBytes = 1000
		d, source, end := drive(t, store, o)
		defer end()
		d.open(1)
		d.say("1", entries(t, "a")...)
		d.send(serviceEntryURL, "2", entries(t, strings.Fields(strings.Repeat("b ", 100))...)...)
		d.open(1)
		if s := source.Status(); status.Code(s.Err) != codes.ResourceExhausted || names(store) != "a" {
			t.Errorf("status %+v, the store has %q", s, names(store))
		}
	})
}

// TestNotOwned: what another writer has put into the store is left alone, and taken over
// when it is gone.
func TestNotOwned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore()
		if _, err := store.Create(entry("default", "a", "foreign.example.com")); err != nil {
			t.Fatal(err)
		}
		if _, err := store.Create(entry("default", "other")); err != nil {
			t.Fatal(err)
		}
		d, source, end := drive(t, store, only(istio.ServiceEntry))
		defer end()
		d.open(1)
		if r := d.say("1", entries(t, "a", "b")...); r.GetErrorDetail() != nil {
			t.Errorf("reply %v: the server has done nothing wrong", r)
		}
		synctest.Wait()
		before := store.Revision()
		errs := source.Report().Errors
		if len(errs) != 1 || !errors.Is(errs[0], ErrNotOwned) || errs[0].Kept || names(store) != "a b other" {
			t.Errorf("report %v, the store has %q", errs, names(store))
		}
		d.say("2", entries(t, "b")...)
		if store.Revision() != before {
			t.Error("an object of another writer was deleted")
		}
		d.say("3", entries(t, "a", "b")...)
		if err := store.Delete(istio.ServiceEntry, "a", "default", nil); err != nil {
			t.Fatal(err)
		}
		time.Sleep(15 * time.Second)
		synctest.Wait()
		if got := names(store); got != "a b other" || len(source.Report().Errors) > 0 {
			t.Errorf("the store has %q, the report %v", got, messages(source))
		}
		// Another writer replaces an object of the source.
		if err := store.Delete(istio.ServiceEntry, "a", "default", nil); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if _, err := store.Create(entry("default", "a", "foreign.example.com")); err != nil {
			t.Fatal(err)
		}
		d.say("4", append(entries(t, "b"), encoded(t, entry("default", "a", "new.example.com")))...)
		synctest.Wait()
		if errs := source.Report().Errors; len(errs) != 1 || !errors.Is(errs[0], ErrNotOwned) || errs[0].Kept {
			t.Errorf("report %v", errs)
		}
		d.say("5", entries(t, "b")...)
		if got := names(store); got != "a b other" {
			t.Errorf("the store has %q", got)
		}
	})
}

// TestStoreRefuses: an object that the store rejects, or that makes it panic, does not block the
// others, and is retried.
func TestStoreRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		full := errors.New("disk is full")
		store := &failing{Store: newStore()}
		d, source, end := drive(t, store, only(istio.ServiceEntry))
		defer end()
		d.open(1)
		d.say("1", entries(t, "a", "c")...)
		for _, failure := range []any{full, "panic"} {
			store.set(failure)
			changed := encoded(t, entry("default", "c", "changed.example.com"))
			if r := d.say("2", append(entries(t, "b", "d"), changed)...); r.GetErrorDetail() != nil {
				t.Errorf("reply %v", r)
			}
			synctest.Wait()
			if got := names(store); got != "b c d" {
				t.Errorf("the store has %q", got)
			}
			errs := source.Report().Errors
			if len(errs) != 1 || errs[0].Object.Name != "c" || !errs[0].Kept || failure == any(full) && !errors.Is(errs[0], full) {
				t.Errorf("report %v", errs)
			}
			time.Sleep(time.Minute)
			if len(source.Report().Errors) != 1 {
				t.Error("the error is gone")
			}
			store.set(nil)
			time.Sleep(15 * time.Second)
			synctest.Wait()
			if errs := source.Report().Errors; len(errs) != 0 {
				t.Errorf("report %v", errs)
			}
			d.say("3", entries(t, "a", "c")...)
		}
	})
}

// failing refuses updates of the object c.
type failing struct {
	*memory.Store
	mu      sync.Mutex
	failure any
}

func (f *failing) set(failure any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.failure = failure
}

func (f *failing) fail(name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err, ok := f.failure.(error); ok && name == "c" {
		return err
	}
	if f.failure != nil && name == "c" {
		panic(f.failure)
	}
	return nil
}

func (f *failing) Apply(mutations ...configstore.Mutation) (uint64, error) {
	for _, m := range mutations {
		if err := f.fail(m.Config.Name); err != nil {
			return 0, err
		}
	}
	return f.Store.Apply(mutations...)
}

func (f *failing) Update(c configstore.Config) (string, error) {
	if err := f.fail(c.Name); err != nil {
		return "", err
	}
	return f.Store.Update(c)
}

// TestOtherWriters: a status that another writer sets stays.
func TestOtherWriters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore()
		d, _, end := drive(t, store, only(istio.ServiceEntry))
		defer end()
		d.open(1)
		d.say("1", entries(t, "a")...)
		withStatus := *store.Get(istio.ServiceEntry, "a", "default")
		schema, _ := store.Schemas().Find(istio.ServiceEntry)
		withStatus.Status = schema.NewStatus()
		if _, err := store.UpdateStatus(withStatus); err != nil {
			t.Fatal(err)
		}
		d.say("2", encoded(t, entry("default", "a", "new.example.com")))
		if got := store.Get(istio.ServiceEntry, "a", "default"); got.Status == nil || got.Generation != 2 {
			t.Errorf("stored %+v", got)
		}
	})
}

// TestGarbage: a message that is none, or half of one, ends the stream, changes nothing,
// and is a failure like any other.
func TestGarbage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore()
		d := &driver{options: []grpc.ServerOption{grpc.ForceServerCodec(spoiler{encoding.GetCodecV2("proto")})}}
		d.init(t)
		source, end := d.run(store, only(istio.ServiceEntry))
		defer end()
		d.open(1)
		d.say("1", entries(t, "a", "b")...)
		for _, version := range []string{"garbage", "half"} {
			d.send(serviceEntryURL, version, entries(t, "c")...)
			d.open(1)
			if s := source.Status(); !s.Stale() || status.Code(s.Err) != codes.Internal || names(store) != "a b" {
				t.Errorf("status %+v, the store has %q", s, names(store))
			}
		}
		d.say("2", entries(t, "a", "c")...)
		if got := names(store); got != "a c" {
			t.Errorf("the store has %q", got)
		}
	})
}

// spoiler spoils the responses of some versions.
type spoiler struct{ encoding.CodecV2 }

func (spoiler) Name() string { return "proto" }

func (s spoiler) Marshal(v any) ([]byte, error) {
	data, err := s.CodecV2.Marshal(v)
	out := data.Materialize()
	if r, ok := v.(*discovery.DiscoveryResponse); ok {
		switch r.GetVersionInfo() {
		case "garbage":
			out = []byte("\xff\xff\xff\xff")
		case "half":
			out = out[:len(out)/2]
		}
	}
	return out, err
}

func (s spoiler) Unmarshal(data []byte, v any) error {
	return s.CodecV2.Unmarshal(mem.BufferSlice{mem.SliceBuffer(data)}, v)
}
