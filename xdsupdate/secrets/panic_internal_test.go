// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"errors"
	"fmt"
	"maps"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/atomic"

	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
)

// TestPanics: a panic of the host's code affects only the secret of the call, and is logged once
// with its stack, but without its value, which may be a key.
func TestPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost()
		o := h.options()
		ends := map[string]func(){
			"panics": func() { panicking([4]byte{0xde, 0xad, 0xbe, 0xef}) }, "exits": runtime.Goexit,
		}
		bad := atomic.NewBool(false)
		told := &panics{times: make(map[string]int)}
		o.Observer = told
		o.Function = func(n Name) (*Secret, error) {
			if do := ends[n.Name]; do != nil && bad.Load() {
				do()
			}
			return h.secret(), nil
		}
		o.Allow = func(namespace string, of Name) bool {
			if bad.Load() {
				panicking([4]byte{0xde, 0xad, 0xbe, 0xef})
			}
			return of.Name == "good"
		}
		g := New(nil, o)
		last := make(map[string]*Secret)
		for _, name := range []string{"good", "panics", "exits"} {
			last[name] = g.store.get(Name{"a", name})
		}
		good := Name{"a", "good"}
		if !g.store.allowed("b", good) || g.store.allowed("b", Name{"a", "other"}) {
			t.Error("Allow is not followed")
		}
		bad.Store(true)
		updater := &recordingUpdater{}
		end := start(t, g, updater)
		time.Sleep(31 * time.Second)
		synctest.Wait()
		for name, want := range last {
			if got := g.store.get(Name{"a", name}); (got == want) == (name == "good") {
				t.Errorf("%s: %v, was %v", name, got, want)
			}
		}
		if !g.store.allowed("b", good) || g.store.allowed("c", good) {
			t.Error("a panic of Allow takes a permission away, or gives one")
		}
		log := h.log.String()
		for text, want := range map[string]int{
			"name=panics": 1, "name=exits": 1, "ended its goroutine": 1, "level=ERROR": 5, "secrets.panicking\\n": 4,
			"proxy_namespace=b": 2, "proxy_namespace=c": 1, "0xde": 0, "222": 0, "\ufffd": 0, "key": 0,
		} {
			if got := strings.Count(log, text); got != want {
				t.Errorf("%q is logged %d times, want %d", text, got, want)
			}
		}
		// One of Function, three of Allow: the end of a goroutine is no panic.
		if want := map[string]int{"a/panics": 1, "a/good": 2, "a/other": 1}; !cmp.Equal(told.of(), want) {
			t.Errorf("the observer was told of %v, want %v", told.of(), want)
		}
		bad.Store(false)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if g.store.get(Name{"a", "exits"}) == last["exits"] || !g.store.allowed("c", good) {
			t.Error("what panicked does not recover")
		}
		end()
	})
}

// panics counts panics, and panics itself.
type panics struct {
	ads.NoObserver
	mu    sync.Mutex
	times map[string]int
}

func (p *panics) Panicked(e ads.PanicEvent) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if e.In == "secret" && e.Err != nil && strings.Contains(e.Stack, "panicking") {
		p.times[e.Name] += e.Times
	}
	panic("the observer")
}

func (p *panics) of() map[string]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.times)
}

//go:noinline
func panicking(key [4]byte) { panic(fmt.Sprintf("the key is %v %s", key, key)) }

// panickingUpdater panics a few times.
type panickingUpdater struct {
	recordingUpdater
	panics int
}

func (u *panickingUpdater) ConfigUpdate(r *xdsupdate.PushRequest) {
	if u.panics--; u.panics >= 0 {
		panic(errors.New("the updater"))
	}
	u.recordingUpdater.ConfigUpdate(r)
}

// TestUpdaterPanics: Run continues, and reports the changes again.
func TestUpdaterPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost()
		g := New(nil, h.options())
		g.store.get(Name{"a", "x"})
		updater := &panickingUpdater{panics: 3}
		end := start(t, g, updater)
		time.Sleep(15 * time.Second)
		synctest.Wait()
		h.rest()
		time.Sleep(40 * time.Second)
		synctest.Wait()
		if want := []string{"full push of Secret/a/x (secret 1)"}; !cmp.Equal(updater.requests, want) {
			t.Errorf("pushes %q, want %q", updater.requests, want)
		}
		end()
		if n := strings.Count(h.log.String(), "panickingUpdater).ConfigUpdate"); n != 1 {
			t.Errorf("logged %d times with the stack, want once: %s", n, &h.log)
		}
		updater.panics = 2
		g.store.restore([]Name{{"a", "x"}})
		for range 3 {
			g.tryReport()
		}
		if n := strings.Count(h.log.String(), "panickingUpdater).ConfigUpdate"); n != 2 || len(updater.requests) != 2 {
			t.Errorf("when it panics again: logged %d times, want twice, pushes %q", n, updater.requests)
		}
	})
}
