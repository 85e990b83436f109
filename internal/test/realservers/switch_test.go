// SPDX-License-Identifier: Apache-2.0

package realservers

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
)

// switchedCaller calls a server that is switched between mutual TLS and plain text.
type switchedCaller struct {
	name string
	// dial makes another connection.
	dial func() *client
	// mutual and plain are the outcomes of its calls by each.
	mutual, plain codes.Code
}

// load makes continuous calls over one connection, and its successors: each call is decided by one
// of the two modes, or its connection ends.
func (c *switchedCaller) load(t *testing.T, calls *atomic.Int64, done *atomic.Bool) {
	t.Helper()
	for line := c.dial(); !done.Load(); calls.Add(1) {
		if got := line.call("Get"); got != c.mutual && got != c.plain && got != closed {
			t.Errorf("%s: %v, want %v or %v", c.name, got, c.mutual, c.plain)
			return
		}
	}
}

// becomes waits until new connections are by the one or by the other.
func (c *switchedCaller) becomes(t *testing.T, mutual bool) {
	t.Helper()
	want := c.plain
	if mutual {
		want = c.mutual
	}
	for deadline := time.Now().Add(patience); ; {
		line := c.dial()
		got := line.call("Get")
		_ = line.conn.Close()
		if got == want {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: %v, want %v", c.name, got, want)
		}
	}
}

// TestSwitchedUnderLoad: while a server is switched between mutual TLS and plain text, callers by
// mutual TLS have their identity, and callers in plain text have none: no call is admitted, or
// denied, if both modes decide otherwise. New connections use the new mode.
func TestSwitchedUnderLoad(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, k kind) {
		t.Helper()
		s := start(t, k, "", mode("STRICT")+policy("a", `{rules: [{from: [{source: {namespaces: [web]}}]}]}`))
		s.cart.becomes(allowed, "Get")
		callers := []switchedCaller{
			{"cart", func() *client { return of(t, s.server, s.issuer, cart) }, allowed, closed},
			{"evil", func() *client { return of(t, s.server, s.issuer, evil) }, denied, closed},
			{"plain", func() *client { return plain(t, s.server) }, closed, denied},
		}
		var calls atomic.Int64
		var done atomic.Bool
		var running sync.WaitGroup
		defer running.Wait()
		defer done.Store(true)
		for i := range callers {
			running.Go(func() { callers[i].load(t, &calls, &done) })
		}
		for i := range 5 {
			mutual := i%2 == 1
			s.apply(mode(map[bool]string{true: "STRICT", false: "DISABLE"}[mutual]))
			s.Applied()
			for j := range callers {
				callers[j].becomes(t, mutual)
			}
			for at := calls.Load(); calls.Load() < at+100 && !t.Failed(); {
				s.plain.call("Get")
			}
		}
		s.Accepted()
		t.Logf("%d calls", calls.Load())
	})
}
