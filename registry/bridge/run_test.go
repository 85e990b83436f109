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
	"testing/synctest"
	"time"

	"github.com/pilotkit/pilotkit/registry/bridge"
)

// run starts a bridge in a bubble; the function that it returns ends it.
func run(b *bridge.Bridge) (end func()) {
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		b.Run(stop)
	}()
	return func() {
		close(stop)
		<-done
	}
}

// gaps returns the times between lists.
func gaps(lists []time.Time) []time.Duration {
	var out []time.Duration
	for i, at := range lists[1:] {
		out = append(out, at.Sub(lists[i]))
	}
	return out
}

// within reports whether a time is at least so long, and at most longer by a share.
func within(d, least time.Duration, more float64) bool {
	return d >= least && d <= least+time.Duration(more*float64(least))
}

func TestPolling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCatalogue("a")
		b := bridge.New(c, bridge.Options{Interval: time.Minute})
		end := run(b)
		synctest.Wait()
		if !b.HasSynced() {
			t.Error("not synced after the first list")
		}
		time.Sleep(time.Hour)
		end()
		distinct := map[time.Duration]bool{}
		for _, gap := range gaps(c.lists()) {
			distinct[gap] = true
			if !within(gap, time.Minute, 0.1) {
				t.Errorf("%v between two lists, want a minute or a tenth more", gap)
			}
		}
		if len(distinct) < 10 {
			t.Errorf("%d different times between lists: no jitter", len(distinct))
		}
		time.Sleep(time.Hour)
		if got := len(c.lists()); got != len(distinct)+1 && got > 62 {
			t.Errorf("%d lists, also after the end", got)
		}
	})
}

// TestBackoff: errors are answered with longer and longer waiting, which ends with the
// first good round.
func TestBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCatalogue("a")
		c.fail(errors.New("away"))
		b := bridge.New(c, bridge.Options{Interval: time.Hour, MaxBackoff: time.Second})
		end := run(b)
		time.Sleep(30 * time.Second)
		if b.HasSynced() {
			t.Error("synced without a list")
		}
		want := []time.Duration{200 * time.Millisecond, 400 * time.Millisecond, 800 * time.Millisecond, time.Second}
		for i, gap := range gaps(c.lists()) {
			if least := want[min(i, 3)]; !within(gap, least, 0.5) {
				t.Errorf("%v until attempt %d, want %v or half more", gap, i+2, least)
			}
		}
		c.fail(nil)
		time.Sleep(2 * time.Second)
		if !b.HasSynced() || b.Status().Stale() {
			t.Errorf("not current again: %+v", b.Status())
		}
		time.Sleep(2 * time.Hour)
		c.fail(errors.New("away again"))
		time.Sleep(2 * time.Hour)
		all := gaps(c.lists())
		last := len(all) - 1
		for last > 0 && all[last] < time.Hour {
			last--
		}
		if first := all[last+1]; !within(first, 200*time.Millisecond, 0.5) {
			t.Errorf("%v until the second attempt, after good lists, want 200 ms or half more", first)
		}
		end()
	})
}

// TestWatch: changes are listed at once, bursts of them after MinInterval, and all the
// same after Resync; the time of that is no error.
func TestWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &watched{catalogue: newCatalogue("a"), poked: make(chan struct{})}
		b := bridge.New(w, bridge.Options{Resync: time.Hour, MinInterval: time.Second})
		end := run(b)
		time.Sleep(time.Minute)
		w.set(record("b"))
		w.poked <- struct{}{}
		synctest.Wait()
		expectShown(t, "a change", b, "a 1.1.1.1", "b")
		w.poked <- struct{}{}
		time.Sleep(time.Hour + 10*time.Minute)
		lists := gaps(w.lists())
		if len(lists) != 3 || lists[0] != time.Minute || lists[1] != time.Second || !within(lists[2], time.Hour+time.Second, 0.1) {
			t.Errorf("times between lists %v, want 1m, 1s, 1h or a tenth more", lists)
		}
		if b.Status().Stale() {
			t.Errorf("stale: %+v", b.Status())
		}
		end()
		if want := []string{"1", "2", "3", "4"}; !slices.Equal(w.asked, want) {
			t.Errorf("watched from %q, want %q", w.asked, want)
		}
	})
}

// TestBrokenWatch: a catalogue that can be listed, but not watched, is stale, is listed with
// increasing backoff, and its empty list is not accepted.
func TestBrokenWatch(t *testing.T) {
	for name, broken := range map[string]func() error{
		"error": func() error { return errors.New("watches are not allowed") },
		"panic": func() error { panic("defect") },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &watched{catalogue: newCatalogue("a"), broken: broken}
				var log bytes.Buffer
				b := bridge.New(w, bridge.Options{MaxBackoff: time.Minute, Logger: slog.New(slog.NewTextHandler(&log, nil))})
				end := run(b)
				time.Sleep(time.Hour)
				if n := len(w.lists()); n < 30 || n > 80 {
					t.Errorf("%d lists in an hour, want about one a minute", n)
				}
				// It is current for a short time after each list.
				stale := 0
				for range 10 {
					time.Sleep(time.Second)
					if b.Status().Stale() {
						stale++
					}
				}
				if !b.HasSynced() || stale < 9 {
					t.Errorf("synced %t, stale in %d of 10 seconds, %+v", b.HasSynced(), stale, b.Status())
				}
				w.replace()
				time.Sleep(time.Hour)
				expectShown(t, "an empty list", b, "a 1.1.1.1")
				w.replace("a", "b")
				time.Sleep(2 * time.Minute)
				expectShown(t, "another list", b, "a 1.1.1.1", "b 1.1.1.1")
				end()
				if n := strings.Count(log.String(), "catalogue is stale"); n > 3 {
					t.Errorf("logged %d times", n)
				}
			})
		})
	}
}

// TestQuietWatchIsCurrentAgain: a watch that works again after a failure is recognized even if the
// catalogue does not change.
func TestQuietWatchIsCurrentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		failures := 2
		w := &watched{catalogue: newCatalogue("a"), poked: make(chan struct{})}
		w.broken = func() error {
			if failures--; failures < 0 {
				return nil
			}
			return errors.New("connection reset")
		}
		b := bridge.New(w, bridge.Options{Interval: 10 * time.Second, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		end := run(b)
		time.Sleep(30 * time.Second)
		synctest.Wait()
		got := log.String()
		end()
		if !strings.Contains(got, "catalogue is stale") || strings.Count(got, "current again") != 1 {
			t.Errorf("after 30 s:\n%s", got)
		}
		if n := len(w.lists()); n > 4 {
			t.Errorf("%d lists", n)
		}
	})
}

// TestHeldListIsAskedForAgain: lists that are to confirm one come by Interval, also where
// the catalogue could be watched.
func TestHeldListIsAskedForAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &watched{catalogue: newCatalogue("a", "b", "c"), poked: make(chan struct{})}
		b := bridge.New(w, bridge.Options{Interval: 10 * time.Second, Confirmations: 2})
		end := run(b)
		time.Sleep(time.Second)
		w.replace("a")
		w.poked <- struct{}{}
		time.Sleep(15 * time.Second)
		if !errors.Is(b.Status().Err, bridge.ErrHeld) || len(b.Services()) != 3 {
			t.Errorf("status %+v, services %q", b.Status(), shown(b))
		}
		time.Sleep(10 * time.Second)
		expectShown(t, "two lists later", b, "a 1.1.1.1")
		end()
	})
}

// silent is a catalogue that does not answer.
type silent struct{}

// List implements bridge.Catalogue.
func (silent) List(ctx context.Context) (bridge.Listing, error) {
	<-ctx.Done()
	return bridge.Listing{}, ctx.Err()
}

// TestSilence: a list has a time limit, and Run does not wait for it to end.
func TestSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := bridge.New(silent{}, bridge.Options{ListTimeout: 5 * time.Second})
		end := run(b)
		time.Sleep(10 * time.Second)
		if err := b.Status().Err; !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v, want DeadlineExceeded", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if err := b.Sync(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a Sync that waits for another one: %v", err)
		}
		began := time.Now()
		end()
		if took := time.Since(began); took > 0 {
			t.Errorf("Run ended after %v", took)
		}
	})
}

// TestSyncWhileRunning: the host may call Sync while Run works.
func TestSyncWhileRunning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &watched{catalogue: newCatalogue("a"), poked: make(chan struct{})}
		b := bridge.New(w, bridge.Options{MinInterval: time.Millisecond})
		end := run(b)
		for range 100 {
			_ = b.Sync(t.Context())
			w.poked <- struct{}{}
			_ = b.Sync(t.Context())
			b.Accept()
			_ = b.Status()
		}
		end()
		expectShown(t, "in the end", b, "a 1.1.1.1")
	})
}

func TestRunTwice(t *testing.T) {
	b := bridge.New(newCatalogue())
	run(b)()
	defer func() {
		if recover() == nil {
			t.Error("the second Run returned")
		}
	}()
	b.Run(nil)
}
