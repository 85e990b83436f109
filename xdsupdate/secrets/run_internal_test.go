// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/atomic"

	"github.com/pilotkit/pilotkit/xdsupdate"
)

// recordingUpdater collects the requests for pushes.
type recordingUpdater struct {
	xdsupdate.Discard
	requests []string
}

func (u *recordingUpdater) ConfigUpdate(r *xdsupdate.PushRequest) {
	u.requests = append(u.requests, r.String())
}

// refresh calls Refresh with an updater.
func refresh(p *Provider, updater xdsupdate.XDSUpdater) {
	p.Attach(updater)
	p.Refresh()
}

// TestRun: secrets in use are read again at every interval, and when the host calls Changed.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var exists atomic.Bool
		var calls atomic.Int64
		g := New(nil, Options{Function: func(Name) (*Secret, error) {
			calls.Inc()
			if exists.Load() {
				return &Secret{}, nil
			}
			return nil, ErrNotFound
		}})
		name := Name{"ingress", "kubernetes://x"}
		if s := g.store.get(name); s != nil {
			t.Errorf("a secret that does not exist: %v", s)
		}
		updater := &recordingUpdater{}
		g.Attach(updater)
		stop := make(chan struct{})
		ended := make(chan struct{})
		go func() {
			g.Run(stop)
			close(ended)
		}()
		time.Sleep(9 * time.Second)
		synctest.Wait()
		if calls.Load() != 1 {
			t.Errorf("%d calls before the interval is over", calls.Load())
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if calls.Load() != 2 || updater.requests != nil {
			t.Errorf("after the interval: %d calls, %q", calls.Load(), updater.requests)
		}
		exists.Store(true)
		g.Changed()
		g.Changed()
		synctest.Wait()
		want := []string{"full push of Secret/ingress/kubernetes://x (secret 1)"}
		if diff := cmp.Diff(want, updater.requests); diff != "" {
			t.Errorf("pushes (-want +got):\n%s", diff)
		}
		close(stop)
		<-ended
		defer func() {
			if recover() == nil {
				t.Error("a second Run did not panic")
			}
		}()
		g.Run(stop)
	})
}

// TestForget: secrets that no name resolves to are not read any more.
func TestForget(t *testing.T) {
	s := newStore(Options{}.withDefaults())
	s.get(Name{"a", "kubernetes://x"})
	s.get(Name{"a", "kubernetes://y"})
	s.retain(func(n Name) bool { return n.Name == "kubernetes://x" })
	if len(s.secrets.entries) != 1 {
		t.Errorf("%d entries", len(s.secrets.entries))
	}
}

// Without an updater nothing is reported.
func TestNoUpdater(t *testing.T) {
	exists := false
	g := New(nil, Options{Function: func(Name) (*Secret, error) {
		if exists {
			return &Secret{}, nil
		}
		return nil, ErrNotFound
	}})
	name := Name{"ingress", "kubernetes://x"}
	if s := g.store.get(name); s != nil {
		t.Fatalf("a secret that does not exist: %v", s)
	}
	exists = true
	g.Refresh()
	if s := g.store.get(name); s == nil {
		t.Error("the secret was not looked up again")
	}
}
