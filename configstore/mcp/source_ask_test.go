// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pilotkit/pilotkit/configstore/istio"
)

// TestAskAgain: a server like an istiod, which does not push all changes, is asked again, and is
// stale once it does not answer.
func TestAskAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := newStore()
		o := only(istio.ServiceEntry)
		o.AskAgain = time.Minute
		d, source, end := drive(t, store, o)
		defer end()
		d.open(1)
		d.say("1", entries(t, "a")...)
		for version, name := range map[string]string{"2": "b", "3": "c"} { // each without a push
			began := time.Now()
			r := <-d.requests
			if r.GetResponseNonce() != "" || r.GetVersionInfo() != "" || r.GetTypeUrl() != serviceEntryURL || time.Since(began) != time.Minute {
				t.Errorf("after %v the request is %v", time.Since(began), r)
			}
			d.say(version, entries(t, name)...)
			synctest.Wait()
			if list := store.List(istio.ServiceEntry, ""); len(list) != 1 || list[0].Name != name {
				t.Errorf("the store has %v, want %s", list, name)
			}
		}
		<-d.requests
		time.Sleep(time.Minute - time.Second)
		synctest.Wait()
		if source.Status().Stale() {
			t.Error("stale before the server is asked again")
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if s := source.Status(); !s.Stale() || !errors.Is(s.Err, errSilent) {
			t.Errorf("a server that does not answer: %+v", s)
		}
		d.open(1)
		d.say("4", entries(t, "d")...)
		synctest.Wait()
		if s := source.Status(); s.Stale() {
			t.Errorf("a server that answers once more: %+v", s)
		}
	})
}

// TestAskAgainOfPushers: a server that pushes every change need not answer, and what it pushes is no answer.
func TestAskAgainOfPushers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := only(istio.ServiceEntry, istio.Gateway)
		o.AskAgain = time.Minute
		d, source, end := drive(t, newStore(), o)
		defer end()
		d.open(2)
		d.send("networking.istio.io/v1/Gateway", "1")
		<-d.requests
		for _, version := range []string{"1", "2"} {
			d.say(version, entries(t, "a")...)
			for range 2 {
				<-d.requests
			}
		}
		for range 20 {
			<-d.requests
		}
		if s := source.Status(); s.Stale() || d.opened.Load() != 1 {
			t.Errorf("after ten minutes: %d streams, %+v", d.opened.Load(), s)
		}
	})
}

// TestNeverAskAgain: a source that is told not to does not ask.
func TestNeverAskAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, _, end := drive(t, newStore(), only(istio.ServiceEntry))
		defer end()
		d.open(1)
		d.say("1", entries(t, "a")...)
		time.Sleep(time.Hour)
		synctest.Wait()
		if n := len(d.requests); n > 0 {
			t.Errorf("%d requests more", n)
		}
	})
}
