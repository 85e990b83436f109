// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/pace"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/wire"
)

// TestWork checks the cost of requests: none for an answer, and for others the cost of their
// content.
func TestWork(t *testing.T) {
	names := func(n int) wire.NameList { return wire.NameList{Count: n} }
	for what, tt := range map[string]struct {
		request wire.Request
		answers bool
		topics  int
		want    int
	}{
		"an answer":                         {wire.Request{Bytes: 1 << 20}, true, 10_000, 0},
		"a refusal of nothing":              {wire.Request{Bytes: 640_000}, false, 10_000, requestWork + 10_000},
		"an answer with known names":        {wire.Request{Bytes: 640_000, Same: true}, true, 10_000, 0},
		"known names":                       {wire.Request{Bytes: 640_000, Same: true}, false, 10_000, requestWork},
		"names":                             {wire.Request{Bytes: 640, Names: names(7)}, false, 4_000, requestWork + 10 + 7 + 200},
		"an answer with other names":        {wire.Request{Bytes: 640, Names: names(7)}, true, 0, requestWork + 10 + 7},
		"names that come and go":            {wire.Request{Subscribe: names(3), Unsubscribe: names(4)}, false, 0, requestWork + 7},
		"what a client says that it has":    {wire.Request{InitialVersions: wire.InitialVersions{VersionsKey: wire.VersionsKey{Count: 5}}}, false, 0, requestWork + 5},
		"an answer that subscribes to some": {wire.Request{Subscribe: names(3)}, true, 0, requestWork + 3},
	} {
		if got := (&received{Request: &tt.request}).work(tt.answers, tt.topics); got != tt.want {
			t.Errorf("%s: %d, want %d", what, got, tt.want)
		}
	}
}

// TestExcess: work beyond an allowance is done for one client at a time, in the order of arrival,
// and then its processor rests for three times as long as the work took, or should have taken. A
// turn that waited for a minute, as for a lock, delays the next one no longer than its work allows.
func TestExcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &Server{large: pace.NewTurns(1), excess: pace.NewTurns(1)}
		begun := time.Now()
		client := func() *stream {
			s := &stream{server: server, allowance: pace.NewAllowance(), ended: make(chan struct{})}
			s.await(pace.WorkAtOnce)()
			return s
		}
		if got := time.Since(begun); got != 0 {
			t.Fatalf("what is allowed has waited for %v", got)
		}
		order := make(chan string, 5)
		work := func(name string, of *stream, work int, takes time.Duration) {
			go func() {
				done := of.await(work)
				if done == nil {
					order <- name + " ended " + time.Since(begun).String()
					return
				}
				order <- name + " " + time.Since(begun).String()
				time.Sleep(takes)
				done()
			}()
			synctest.Wait()
		}
		work("waited", client(), 1_000, time.Minute)
		work("slow", client(), 500_000, time.Second)
		work("large", client(), 3_000_000, 0)
		left := client()
		work("left", left, 1, 0)
		work("last", client(), 1, 0)
		left.end(nil)
		for _, want := range []string{"waited 0s", "left ended 0s", "slow 1m0.03s", "large 1m4.03s", "last 1m13.03s"} {
			if got := <-order; got != want {
				t.Errorf("%s, want %s", got, want)
			}
		}
		time.Sleep(time.Second)
		server.excess.Wait(nil) // it would not return if a turn was taken in the end
	})
}

// TestLargeWork: large work that is allowed is done for one client at a time, one after
// the other, and small work waits for nothing.
func TestLargeWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &Server{large: pace.NewTurns(1), excess: pace.NewTurns(1)}
		begun := time.Now()
		order := make(chan string, 3)
		work := func(name string, work int) {
			s := &stream{server: server, allowance: pace.NewAllowance(), ended: make(chan struct{})}
			go func() {
				done := s.await(work)
				order <- name + " " + time.Since(begun).String()
				time.Sleep(time.Second)
				done()
			}()
			synctest.Wait()
		}
		work("large", largeWork)
		work("next", largeWork)
		work("small", largeWork-1)
		for _, want := range []string{"large 0s", "small 0s", "next 1s"} {
			if got := <-order; got != want {
				t.Errorf("%s, want %s", got, want)
			}
		}
		time.Sleep(time.Minute)
	})
}

// TestSpend: work that a request did not show is made up for, and not for ever.
func TestSpend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stream{server: &Server{}, allowance: pace.NewAllowance()}
		for range 100 {
			s.server.allowances.Spend(s.allowance, pace.WorkAtOnce)
		}
		allows := func(work int) bool { return s.server.allowances.Allows(s.allowance, work) }
		if allows(1) {
			t.Error("work was done for nothing")
		}
		const second = float64(pace.WorkAtOnce) / pace.WorkPerSecond // after this many, the debt is paid
		time.Sleep(time.Duration(second * float64(time.Second)))
		if allows(1) {
			t.Error("what was done is made up for too soon")
		}
		time.Sleep(time.Second)
		if !allows(pace.WorkPerSecond - 1) {
			t.Error("what was done is made up for too late")
		}
	})
}
