// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"bytes"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/atomic"

	"github.com/pilotkit/pilotkit/xdsupdate"
)

// host is a program's function that hangs for some names.
type host struct {
	mu      sync.Mutex
	hanging map[string]chan struct{}
	calls   map[string]int
	log     bytes.Buffer
	// versions counts the secrets that it has had, unless they stay as they are.
	versions int
	constant bool
}

func newHost() *host {
	return &host{hanging: make(map[string]chan struct{}), calls: make(map[string]int)}
}

func (h *host) hang(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.hanging[name] = make(chan struct{})
}

func (h *host) release(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	close(h.hanging[name])
	delete(h.hanging, name)
}

func (h *host) called(name string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.calls[name]
}

// call counts the call and hangs if it should.
func (h *host) call(name string) int {
	h.mu.Lock()
	h.calls[name]++
	n, hanging := h.calls[name], h.hanging[name]
	h.mu.Unlock()
	if hanging != nil {
		<-hanging
	}
	return n
}

func (h *host) options() Options {
	return Options{
		Logger: slog.New(slog.NewTextHandler(&h.log, nil)),
		Function: func(n Name) (*Secret, error) {
			h.call(n.Name)
			return h.secret(), nil
		},
	}
}

// secret returns a secret that is another one each time.
func (h *host) secret() *Secret {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.constant {
		h.versions++
	}
	return &Secret{Authorities: testAuthorities(h.versions)}
}

// rest makes all later secrets equal to the last one.
func (h *host) rest() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.constant = true
}

// start runs a provider in a synctest bubble, and returns what ends it.
func start(t *testing.T, g *Provider, updater xdsupdate.XDSUpdater) (end func()) {
	t.Helper()
	g.Attach(updater)
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() {
		g.Run(stop)
		close(ended)
	}()
	return func() {
		t.Helper()
		before := time.Now()
		close(stop)
		<-ended
		if took := time.Since(before); took != 0 {
			t.Errorf("Run ended %v after it was stopped", took)
		}
	}
}

// ownGoroutines counts the goroutines of this package: the runtime starts others.
func ownGoroutines() (n int) {
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	for stack := range strings.SplitSeq(string(stacks), "\n\n") {
		if strings.Contains(stack, "xdsupdate/secrets.") {
			n++
		}
	}
	return n
}

// TestHangingFunction: a lookup of a name that never returns costs one goroutine. It neither delays
// other names nor the end of Run, is logged once, keeps the last good secret, and recovers.
func TestHangingFunction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost()
		g := New(nil, h.options())
		bad, good := Name{"a", "bad"}, Name{"a", "good"}
		h.hang("bad")
		began := time.Now()
		if s := g.store.get(bad); s != nil || time.Since(began) != proxyPatience {
			t.Errorf("%v after %v, want none after %v", s, time.Since(began), proxyPatience)
		}
		began = time.Now()
		if g.store.get(bad); g.store.get(good) == nil || time.Since(began) != 0 {
			t.Errorf("another one is delayed by %v", time.Since(began))
		}
		updater := &recordingUpdater{}
		end := start(t, g, updater)
		goroutines := ownGoroutines()
		time.Sleep(101 * time.Second)
		synctest.Wait()
		if n := h.called("bad"); n != 1 || h.called("good") != 11 || len(updater.requests) != 10 {
			t.Errorf("%d calls that hang, %d others, %d pushes, want 1, 11, 10", n, h.called("good"), len(updater.requests))
		}
		if n := ownGoroutines(); n > goroutines {
			t.Errorf("%d goroutines, %d of them new", n, n-goroutines)
		}
		if n := strings.Count(h.log.String(), errOverdue.Error()); n != 1 || !strings.Contains(h.log.String(), "name=bad") {
			t.Errorf("logged %d times, want once: %s", n, &h.log)
		}

		updater.requests = nil
		h.release("bad")
		synctest.Wait()
		first := g.store.get(bad)
		if want := []string{"full push of Secret/a/bad (secret 1)"}; first == nil || !cmp.Equal(updater.requests, want) {
			t.Errorf("when it answers: %v, pushes %q", first, updater.requests)
		}

		h.hang("bad")
		time.Sleep(101 * time.Second)
		synctest.Wait()
		if g.store.get(bad) != first || h.called("bad") != 2 || strings.Count(h.log.String(), errOverdue.Error()) != 2 {
			t.Errorf("when it hangs again: %d calls, log: %s", h.called("bad"), &h.log)
		}
		h.release("bad")
		synctest.Wait()
		if g.store.get(bad) == first {
			t.Error("the answer that came at last is ignored")
		}
		h.hang("bad")
		g.Changed()
		synctest.Wait()
		end()
		h.release("bad")
	})
}

// TestHangingFile: the same for files, which proxies of all namespaces share.
func TestHangingFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost()
		o := h.options()
		o.Files = map[Name]Files{{Name: "bad"}: {Authorities: "/bad"}, {"a", "good"}: {Authorities: "/good"}}
		g := New(nil, o)
		g.store.readFile = func(path string, _ int) ([]byte, error) {
			h.call(path)
			return h.secret().Authorities, nil
		}
		h.hang("/bad")
		for i := range 100 {
			if s := g.store.get(Name{fmt.Sprint(i), "bad"}); s != nil {
				t.Errorf("%v", s)
			}
		}
		updater := &recordingUpdater{}
		end := start(t, g, updater)
		g.store.get(Name{"a", "good"})
		time.Sleep(101 * time.Second)
		synctest.Wait()
		if h.called("/bad") != 1 || h.called("/good") != 11 || len(updater.requests) != 10 {
			t.Errorf("%d reads that hang, %d others, %d pushes, want 1, 11, 10", h.called("/bad"), h.called("/good"), len(updater.requests))
		}
		updater.requests = nil
		h.release("/bad")
		synctest.Wait()
		if want := []string{"full push of Secret//bad (secret 1)"}; g.store.get(Name{"7", "bad"}) == nil || !cmp.Equal(updater.requests, want) {
			t.Errorf("pushes %q, want %q", updater.requests, want)
		}
		end()
	})
}

// TestAllHang: if all lookups hang, no further lookup begins; a refresh waits once and not for each
// lookup, and all of them recover.
func TestAllHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost()
		g := New(nil, h.options())
		h.hang("bad")
		var all sync.WaitGroup
		for i := range maxLookups + 10 {
			all.Go(func() { g.store.get(Name{fmt.Sprint(i), "bad"}) })
		}
		all.Wait()
		if h.called("bad") != maxLookups || strings.Count(h.log.String(), errTooMany.Error()) != 10 {
			t.Errorf("%d calls, want %d; log: %.500s", h.called("bad"), maxLookups, &h.log)
		}
		began := time.Now()
		refresh(g, &recordingUpdater{})
		if took := time.Since(began); took != 0 {
			t.Errorf("Refresh waits %v for what was late before", took)
		}
		h.release("bad")
		synctest.Wait()
		refresh(g, &recordingUpdater{})
		for i := range maxLookups + 10 {
			if g.store.get(Name{fmt.Sprint(i), "bad"}) == nil {
				t.Errorf("%d has not recovered", i)
			}
		}
		if g.store.secrets.running != 0 || g.store.secrets.late != 0 {
			t.Errorf("%d lookups, %d late", g.store.secrets.running, g.store.secrets.late)
		}

		h.hang("bad")
		began = time.Now()
		g.store.refresh(false, nil)
		took := time.Since(began)
		if limit := (maxLookups + 10) / width * 2 * patienceWhileLate; took > limit {
			t.Errorf("a refresh took %v when all began to hang, want at most %v", took, limit)
		}
		h.release("bad")
	})
}

// TestRefreshWaits: Refresh waits for lookups until the timeout, and reports their results; the
// result of a slower lookup is reported later.
func TestRefreshWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost()
		o := h.options()
		took := atomic.NewDuration(0)
		o.Function = func(Name) (*Secret, error) {
			time.Sleep(took.Load())
			return h.secret(), nil
		}
		g := New(nil, o)
		g.store.get(Name{"a", "slow"})
		updater := &recordingUpdater{}
		took.Store(3 * time.Second)
		refresh(g, updater)
		if len(updater.requests) != 1 {
			t.Errorf("pushes %q after Refresh, want one", updater.requests)
		}
		took.Store(7 * time.Second)
		began := time.Now()
		refresh(g, updater)
		if waited := time.Since(began); waited != defaultTimeout || len(updater.requests) != 1 {
			t.Errorf("pushes %q after %v, want no other one after %v", updater.requests, waited, defaultTimeout)
		}
		time.Sleep(3 * time.Second)
		took.Store(0)
		h.rest()
		refresh(g, updater)
		if len(updater.requests) != 2 {
			t.Errorf("pushes %q, want one of what came late", updater.requests)
		}
	})
}

// TestChangedWhileLookedUp: if the host calls Changed during a lookup, another lookup follows.
func TestChangedWhileLookedUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost()
		g := New(nil, h.options())
		n := Name{"a", "x"}
		g.store.get(n)
		end := start(t, g, &recordingUpdater{})
		for range 3 { // ticks do not accumulate
			h.hang("x")
			time.Sleep(25 * time.Second)
			g.Changed()
			synctest.Wait()
			before := h.called("x")
			h.release("x")
			synctest.Wait()
			if calls := h.called("x"); calls != before+1 {
				t.Errorf("%d calls after the one that was on its way, want 1", calls-before)
			}
		}
		end()
	})
}

// TestForgottenWhileItHangs: a config that comes and goes begins no second lookup
// of a secret that hangs.
func TestForgottenWhileItHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost()
		g := New(nil, h.options())
		n := Name{"a", "x"}
		h.hang("x")
		for range 10 {
			g.store.get(n)
			g.store.retain(func(Name) bool { return false })
		}
		if h.called("x") != 1 || len(g.store.secrets.entries) != 1 {
			t.Errorf("%d calls, %d entries", h.called("x"), len(g.store.secrets.entries))
		}
		h.release("x")
		synctest.Wait()
		if len(g.store.secrets.entries) != 0 || len(g.store.changed()) != 0 {
			t.Error("what hung when it went out of use is not forgotten")
		}
		h.hang("x")
		g.store.get(n)
		g.store.retain(func(Name) bool { return false })
		g.store.get(n) // in use again
		h.release("x")
		synctest.Wait()
		if want := []Name{n}; !cmp.Equal(g.store.changed(), want) || g.store.get(n) == nil || h.called("x") != 2 {
			t.Error("what came into use again while it hung was forgotten")
		}
	})
}

// TestSlowAllow: while Allow has not answered, the answer is no, or the last one.
// When it is another one that is reported.
func TestSlowAllow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost()
		o := h.options()
		yes := atomic.NewBool(true)
		o.Allow = func(string, Name) bool {
			h.call("allow")
			return yes.Load()
		}
		g := New(nil, o)
		n := Name{"a", "x"}
		g.store.get(n)
		updater := &recordingUpdater{}
		end := start(t, g, updater)
		step := func(what string, want bool, pushes ...string) {
			t.Helper()
			synctest.Wait()
			if diff := cmp.Diff(pushes, updater.requests); diff != "" || g.store.allowed("b", n) != want {
				t.Errorf("%s: allowed %t, want %t; pushes (-want +got):\n%s", what, !want, want, diff)
			}
			updater.requests = nil
		}
		h.rest()
		h.hang("allow")
		step("it hangs", false)
		h.release("allow")
		step("it answers", true, "full push of Secret/a/x (secret 1)")
		h.hang("allow")
		yes.Store(false)
		time.Sleep(20 * time.Second)
		step("it hangs again", true)
		h.release("allow")
		step("it answers no", false, "full push of Secret/a/x (secret 1)")
		g.store.retain(func(Name) bool { return false })
		if n := len(g.store.permissions.entries); n != 0 {
			t.Errorf("%d permissions for what is not in use", n)
		}
		end()
	})
}

// TestReportedOnce: a secret that changes together with a permission for it is one change.
func TestReportedOnce(t *testing.T) {
	h := newHost()
	o := h.options()
	yes := false
	o.Allow = func(string, Name) bool { return yes }
	g := New(nil, o)
	g.store.get(Name{"a", "x"})
	g.store.allowed("b", Name{"a", "x"})
	yes = true
	updater := &recordingUpdater{}
	refresh(g, updater)
	if want := []string{"full push of Secret/a/x (secret 1)"}; !cmp.Equal(updater.requests, want) {
		t.Errorf("pushes %q, want %q", updater.requests, want)
	}
}
