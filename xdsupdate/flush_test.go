// SPDX-License-Identifier: Apache-2.0

package xdsupdate_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pilotkit/pilotkit/xdsupdate"
)

func TestFlushDoesNotWaitForTheDebounce(t *testing.T) {
	inBubble(t, xdsupdate.PusherOptions{Debounce: xdsupdate.Debounce{EndpointInterval: time.Hour}}, func(p *xdsupdate.Pusher, got *pushes) {
		p.ConfigUpdate(endpointPush("b")) // the next push of endpoints has to wait
		got.expect(0, "0s endpoint push of ServiceEntry/default/b (endpoint 1)")
		p.ConfigUpdate(fullPush("a"))
		p.ConfigUpdate(endpointPush("b"))
		if err := p.Flush(got.t.Context()); err != nil {
			got.t.Fatal(err)
		}
		got.expect(0, "0s full push of ServiceEntry/default/b,VirtualService/default/a (config 1, endpoint 1)")
		if err := p.Flush(got.t.Context()); err != nil {
			got.t.Fatal(err)
		}
		got.expect(time.Minute)
	})
}

// TestFlushWakesRun from its wait until the request is due.
func TestFlushWakesRun(t *testing.T) {
	inBubble(t, xdsupdate.PusherOptions{}, func(p *xdsupdate.Pusher, got *pushes) {
		p.ConfigUpdate(fullPush("a"))
		synctest.Wait()
		if err := p.Flush(got.t.Context()); err != nil {
			got.t.Fatal(err)
		}
		got.expect(0, "0s full push of VirtualService/default/a (config 1)")
	})
}

// TestFlushWaitsForTheRunningPush and for what was asked for during it.
func TestFlushWaitsForTheRunningPush(t *testing.T) {
	inBubble(t, xdsupdate.PusherOptions{Debounce: xdsupdate.Debounce{After: -1}}, func(p *xdsupdate.Pusher, got *pushes) {
		got.slow = time.Second
		p.ConfigUpdate(fullPush("a"))
		synctest.Wait()
		p.ConfigUpdate(fullPush("b"))
		if err := p.Flush(got.t.Context()); err != nil {
			got.t.Fatal(err)
		}
		if at := time.Since(got.start); at != 2*time.Second {
			got.t.Errorf("Flush returned after %v, want 2s", at)
		}
		got.log = nil
	})
}

func TestFlushEndsWithItsContext(t *testing.T) {
	inBubble(t, xdsupdate.PusherOptions{Debounce: xdsupdate.Debounce{After: -1}}, func(p *xdsupdate.Pusher, got *pushes) {
		got.slow = time.Hour
		p.ConfigUpdate(fullPush("a"))
		synctest.Wait()
		ctx, cancel := context.WithTimeout(got.t.Context(), time.Second)
		defer cancel()
		if err := p.Flush(ctx); !errors.Is(err, context.DeadlineExceeded) {
			got.t.Errorf("Flush returned %v, want a deadline error", err)
		}
	})
}

// TestFlushWithoutRun: a host can drive the Pusher itself; several do it one
// after the other.
func TestFlushWithoutRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got := &pushes{t: t, start: time.Now(), slow: time.Second}
		p := xdsupdate.NewPusher(got.push, xdsupdate.PusherOptions{})
		var wg sync.WaitGroup
		for _, name := range []string{"a", "b"} {
			p.ConfigUpdate(fullPush(name))
			wg.Go(func() {
				if err := p.Flush(t.Context()); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		wg.Wait()
		got.expect(0,
			"0s full push of VirtualService/default/a (config 1)", "1s full push of VirtualService/default/b (config 1)")
	})
}

// TestRunTakesOverFromFlush: Run waits for the push of a Flush that began before.
func TestRunTakesOverFromFlush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got := &pushes{t: t, start: time.Now(), slow: time.Second}
		p := xdsupdate.NewPusher(got.push, xdsupdate.PusherOptions{Debounce: xdsupdate.Debounce{After: -1}})
		stop := make(chan struct{})
		var wg sync.WaitGroup
		p.ConfigUpdate(fullPush("a"))
		wg.Go(func() { _ = p.Flush(t.Context()) })
		synctest.Wait()
		p.ConfigUpdate(fullPush("b"))
		wg.Go(func() { p.Run(stop) })
		got.expect(5*time.Second,
			"0s full push of VirtualService/default/a (config 1)", "1s full push of VirtualService/default/b (config 1)")
		close(stop)
		wg.Wait()
	})
}

// TestFlushAfterRun: a Flush that waits for Run fails when Run ends, and so does
// each that comes later.
func TestFlushAfterRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got := &pushes{t: t, start: time.Now(), slow: time.Second}
		p := xdsupdate.NewPusher(got.push, xdsupdate.PusherOptions{Debounce: xdsupdate.Debounce{After: -1}})
		stop := make(chan struct{})
		var wg sync.WaitGroup
		wg.Go(func() { p.Run(stop) })
		p.ConfigUpdate(fullPush("a"))
		synctest.Wait()
		p.ConfigUpdate(fullPush("b"))
		wg.Go(func() {
			if err := p.Flush(t.Context()); err == nil {
				t.Error("Flush did not fail although Run ended before the push")
			}
		})
		synctest.Wait()
		close(stop)
		wg.Wait()
		if err := p.Flush(t.Context()); err == nil {
			t.Error("Flush did not fail after the end of Run")
		}
		got.expect(time.Minute, "0s full push of VirtualService/default/a (config 1)")
		idle := newQuietPusher()
		idle.Run(stop)
		if err := idle.Flush(t.Context()); err == nil {
			t.Error("Flush did not fail after the end of Run, with nothing to push")
		}
	})
}

// TestFlushEndsWithRun: a Flush that waits for the push of another one fails when Run
// ends, not when the push does.
func TestFlushEndsWithRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got := &pushes{t: t, start: time.Now(), slow: time.Second}
		p := xdsupdate.NewPusher(got.push, xdsupdate.PusherOptions{Debounce: xdsupdate.Debounce{After: -1}})
		stop := make(chan struct{})
		var wg sync.WaitGroup
		p.ConfigUpdate(fullPush("a"))
		wg.Go(func() { _ = p.Flush(t.Context()) })
		synctest.Wait()
		wg.Go(func() { p.Run(stop) })
		wg.Go(func() {
			err := p.Flush(t.Context())
			if waited := time.Since(got.start); err == nil || waited > 0 {
				t.Errorf("Flush returned %v after %v, want an error when Run ends", err, waited)
			}
		})
		synctest.Wait()
		close(stop)
		wg.Wait()
	})
}

// TestFlushNeverHangs: Run ends at any moment of a Flush.
func TestFlushNeverHangs(t *testing.T) {
	for range 500 {
		synctest.Test(t, func(t *testing.T) {
			p := xdsupdate.NewPusher(func(*xdsupdate.PushRequest) {}, xdsupdate.PusherOptions{Debounce: xdsupdate.Debounce{After: -1}})
			stop := make(chan struct{})
			var wg sync.WaitGroup
			wg.Go(func() { p.Run(stop) })
			for range 2 {
				wg.Go(func() {
					for range 3 {
						p.ConfigUpdate(fullPush("a"))
						_ = p.Flush(t.Context()) // fails if Run has ended
					}
				})
			}
			close(stop)
			wg.Wait()
		})
	}
}
