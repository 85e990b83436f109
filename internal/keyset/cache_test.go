// SPDX-License-Identifier: Apache-2.0

package keyset

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

const refresh = 20 * time.Minute

// web contains the published documents.
type web struct {
	mu      sync.Mutex
	pages   map[string]string
	fetched map[string]int
	// open and most are the current and the maximum number of concurrent fetches.
	open, most int
	// slow is the delay of a response.
	slow time.Duration
	// told are the reported outcomes, with their times.
	told []told
}

type told struct {
	Outcome[string]
	at time.Time
}

func (w *web) tell(o Outcome[string]) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.told = append(w.told, told{o, time.Now()})
}

func (w *web) outcomes() []told {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.told)
}

func newWeb() *web { return &web{pages: make(map[string]string), fetched: make(map[string]int)} }

func (w *web) set(uri, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pages[uri] = text
}

func (w *web) count(uri string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.fetched[uri]
}

func (w *web) fetch(ctx context.Context, uri string) ([]byte, error) {
	w.mu.Lock()
	w.fetched[uri]++
	w.open++
	w.most = max(w.most, w.open)
	text, ok := w.pages[uri]
	slow := w.slow
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		w.open--
		w.mu.Unlock()
	}()
	select {
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-time.After(slow):
	}
	switch {
	case text == "panic":
		panic("on purpose")
	case !ok:
		return nil, errors.New("404")
	}
	return []byte(text), nil
}

// cacheOf returns a cache of a web that runs until the test ends, and a channel with the users of
// changed sets.
func cacheOf(t *testing.T, w *web) (*Cache[string], chan map[string]struct{}) {
	t.Helper()
	changes := make(chan map[string]struct{}, 100)
	c := New(Options[string]{
		Fetch: w.fetch, MaxBytes: 1000, Refresh: refresh,
		Changed: func(users map[string]struct{}) { changes <- users }, Failed: w.tell,
	})
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		c.Run(stop)
	}()
	t.Cleanup(func() {
		close(stop)
		<-done
	})
	return c, changes
}

func set(x string) string { return `{"keys":[{"kty":"EC","crv":"P-256","x":"` + x + `","y":"y"}]}` }

// TestRotation: a set is fetched when it is used, and then periodically. Its users are notified of
// a change, and the last good one stays while fetches fail.
func TestRotation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWeb()
		w.slow = time.Second
		c, changes := cacheOf(t, w)
		s := Source{URI: "http://a/keys"}
		if got := c.Get(s); got.Set != "" || !errors.Is(got.Err, ErrNotFetched) {
			t.Errorf("before: %+v", got)
		}
		c.Retain(s, "a")
		if c.Synced() {
			t.Error("synced before it was tried")
		}
		time.Sleep(w.slow + 10*time.Millisecond)
		if got := c.Get(s); got.Set != "" || got.Err == nil || !c.Synced() || len(changes) > 0 {
			t.Errorf("without an answer: %+v, synced %t, %d changes", got, c.Synced(), len(changes))
		}
		w.set(s.URI, set("one"))
		users := <-changes
		if got := c.Get(s); got.Err != nil || got.Set != set("one") || len(users) != 1 {
			t.Errorf("first: %+v for %v", got, users)
		}
		w.set(s.URI, set("two"))
		<-changes
		if got := c.Get(s); got.Set != set("two") {
			t.Errorf("second: %+v", got)
		}
		for _, bad := range []string{"x", `{"keys":[]}`, `{"keys":[{"kty":"oct","k":"a"}]}`, strings.Repeat(" ", 1001), "panic"} {
			w.set(s.URI, bad)
			time.Sleep(2 * refresh)
			if got := c.Get(s); got.Set != set("two") || got.Err == nil {
				t.Errorf("%q: %+v", bad, got)
			}
		}
		w.set(s.URI, set("two"))
		time.Sleep(2 * refresh)
		if got := c.Get(s); got.Err != nil || len(changes) > 0 {
			t.Errorf("at last: %+v, %d changes", got, len(changes))
		}
		c.Release(s, "a")
		n := w.count(s.URI)
		time.Sleep(5 * refresh)
		c.mu.Lock()
		defer c.mu.Unlock()
		if w.count(s.URI) != n || len(c.entries)+len(c.waiting) > 0 {
			t.Errorf("%d attempts after %d when nobody used it, %d entries, %d waiting", w.count(s.URI), n, len(c.entries), len(c.waiting))
		}
	})
}

// TestBackoff: failed fetches are retried with increasing delays.
func TestBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWeb()
		c, _ := cacheOf(t, w)
		c.Retain(Source{URI: "http://a/keys"}, "a")
		time.Sleep(time.Hour)
		if n := w.count("http://a/keys"); n < 40 || n > 80 {
			t.Errorf("%d attempts in an hour", n)
		}
	})
}

// TestSlow: a source without a response costs its timeout, and delays others only when all slots
// are in use.
func TestSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWeb()
		w.slow = time.Hour
		c, changes := cacheOf(t, w)
		for i := range 3 * parallel {
			c.Retain(Source{URI: fmt.Sprintf("http://slow/%d", i), Timeout: time.Second}, fmt.Sprint(i))
		}
		time.Sleep(4 * time.Second)
		w.mu.Lock()
		most := w.most
		w.slow = 0
		w.mu.Unlock()
		if !c.Synced() || most != parallel {
			t.Errorf("synced %t, %d at a time", c.Synced(), most)
		}
		c.Retain(Source{URI: "http://a/keys"}, "a")
		w.set("http://a/keys", set("one"))
		if users := <-changes; len(users) != 1 {
			t.Errorf("changed %v", users)
		}
	})
}

// TestDiscovery: the configuration of an issuer contains the location of the keys.
func TestDiscovery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWeb()
		w.set("https://issuer/a/.well-known/openid-configuration", `{"jwks_uri": "https://keys/a"}`)
		w.set("https://keys/a", set("one"))
		w.set("https://none/.well-known/openid-configuration", `{}`)
		c, _ := cacheOf(t, w)
		for issuer, want := range map[string]string{
			"https://issuer/a": "", "https://issuer/a/": "", "https://none": "jwks_uri", "https://other": "404", "someone@example.com": "no URL", "": "no URL",
		} {
			s := Source{Issuer: issuer}
			c.Retain(s, "a")
			synctest.Wait()
			got := c.Get(s)
			if want == "" && (got.Err != nil || got.Set != set("one")) || want != "" && (got.Err == nil || !strings.Contains(got.Err.Error(), want)) {
				t.Errorf("%q: %+v", issuer, got)
			}
		}
	})
}

// FuzzPublic: the result has no private member, and is a fixed point.
func FuzzPublic(f *testing.F) {
	f.Add([]byte(set("one")))
	f.Add([]byte(`{"keys":[{"kty":"RSA","n":"a","e":"b","d":"secret"},{"kty":"OKP","crv":"Ed25519","x":"a","kid":"k"},{"kty":"oct","k":"secret"}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		keys, err := public(data)
		if err != nil {
			return
		}
		again, err := public([]byte(keys))
		if err != nil || again != keys {
			t.Errorf("%s, then %s, %v", keys, again, err)
		}
		for _, private := range []string{`"d":`, `"k":`, `"p":`} {
			if strings.Contains(keys, private) {
				t.Errorf("it has %s: %s", private, keys)
			}
		}
	})
}
