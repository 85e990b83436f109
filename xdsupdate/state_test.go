// SPDX-License-Identifier: Apache-2.0

package xdsupdate_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/atomic"

	"github.com/pilotkit/pilotkit/xdsupdate"
)

// TestState: what a Pusher says that it is at, before, during and after pushes, and when one
// has failed.
func TestState(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		at := func(d time.Duration) time.Time { return begun.Add(d) }
		var fails atomic.Bool
		var during xdsupdate.PusherState
		var p *xdsupdate.Pusher
		p = xdsupdate.NewPusher(func(*xdsupdate.PushRequest) {
			time.Sleep(time.Second)
			during = p.State()
			if fails.Load() {
				panic("boom")
			}
		})
		idle := xdsupdate.PusherState{
			DebounceAfter: 100 * time.Millisecond, DebounceMax: 500 * time.Millisecond, EndpointInterval: 10 * time.Millisecond,
		}
		compare := func(when string, got, want xdsupdate.PusherState) {
			t.Helper()
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", when, diff)
			}
		}
		compare("at first", p.State(), idle)
		request := &xdsupdate.PushRequest{
			Full: true, Reason: map[xdsupdate.TriggerReason]int{xdsupdate.ReasonConfig: 1},
			ConfigsUpdated: xdsupdate.KeySet(xdsupdate.ServiceKey("a", "ns"), xdsupdate.ServiceKey("b", "ns")),
		}
		p.ConfigUpdate(request)
		p.ConfigUpdate(request)
		p.ConfigUpdate(&xdsupdate.PushRequest{ConfigsUpdated: xdsupdate.KeySet(xdsupdate.ServiceKey("c", "ns"))})
		waiting := idle
		waiting.Full = xdsupdate.WaitingRequests{Requests: 2, Keys: 2, Since: begun, Due: at(100 * time.Millisecond)}
		got := p.State()
		waiting.Endpoints = xdsupdate.WaitingRequests{Requests: 1, Keys: 1, Since: begun, Due: got.Endpoints.Due}
		compare("waiting", got, waiting)

		stop, done := make(chan struct{}), make(chan struct{})
		go func() { p.Run(stop); close(done) }()
		synctest.Wait()
		running := idle
		running.Running, running.Pushing = true, begun
		compare("pushing", p.State(), running)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		compare("in the push", during, running)
		running.Pushing, running.Pushes = time.Time{}, 1
		running.Last = xdsupdate.FinishedPush{
			Full: true, Keys: 3, Ended: at(time.Second), Took: time.Second,
			Reason: map[xdsupdate.TriggerReason]int{xdsupdate.ReasonConfig: 2},
		}
		compare("pushed", p.State(), running)

		fails.Store(true)
		p.ConfigUpdate(&xdsupdate.PushRequest{Full: true, Forced: true})
		time.Sleep(1200 * time.Millisecond) // 2 s + 100 ms + 1 s, and a second before it is tried again
		synctest.Wait()
		running.Pushes, running.Failed, running.Retry = 2, 1, at(4100*time.Millisecond)
		running.Last = xdsupdate.FinishedPush{
			Full: true, Forced: true, Everything: true, Ended: at(3100 * time.Millisecond), Took: time.Second, Failed: true,
			Reason: map[xdsupdate.TriggerReason]int{xdsupdate.ReasonUnknown: 1},
		}
		compare("failed", p.State(), running)

		fails.Store(false)
		time.Sleep(3 * time.Second)
		close(stop)
		<-done
		if s := p.State(); s.Running || s.Failed != 1 || s.Pushes != 3 || s.Last.Failed || !s.Retry.IsZero() {
			t.Errorf("at the end: %+v", s)
		}
	})
}
