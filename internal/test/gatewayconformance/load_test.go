// SPDX-License-Identifier: Apache-2.0

package gatewayconformance

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"
)

// ask is one request of a load: its target, and its host.
type ask struct{ address, host string }

// caller sends requests to Gateways.
type caller struct{ client *http.Client }

// newCaller returns one that keeps its connections, or, with settings of TLS, makes one for each
// request.
func newCaller(tb testing.TB, settings *tls.Config) *caller {
	tb.Helper()
	transport := &http.Transport{TLSClientConfig: settings, DisableKeepAlives: settings != nil, MaxIdleConnsPerHost: 16}
	tb.Cleanup(transport.CloseIdleConnections)
	return &caller{&http.Client{Transport: transport, Timeout: patience}}
}

// get returns the response to a request, a body, or a status, or an error, and its connection.
func (c *caller) get(ctx context.Context, a ask) (answer string, connection *tls.ConnectionState) {
	url := "http://" + a.address + "/"
	if _, port, err := net.SplitHostPort(a.address); err == nil && port == "443" {
		url = "https://" + a.address + "/"
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err.Error(), nil
	}
	request.Host = a.host
	response, err := c.client.Do(request)
	if err != nil {
		return err.Error(), nil
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	switch {
	case err != nil:
		return err.Error(), nil
	case response.StatusCode != http.StatusOK:
		return strconv.Itoa(response.StatusCode), response.TLS
	}
	return string(body), response.TLS
}

// load is requests without a pause.
type load struct {
	t      *testing.T
	end    context.CancelFunc
	joined sync.WaitGroup

	mu    sync.Mutex
	asks  []ask
	round int         // counts the changes of asks
	under map[int]int // requests that are under way, by round
	sent  int         // that were answered
	idle  *sync.Cond
	seen  func(a ask, answer string, connection *tls.ConnectionState)
}

// callers is how many requests of a load are under way at a time.
const callers = 4

// startLoad sends requests, some at a time, until the test ends, or stop is called. Each answer is
// seen by a function, one at a time.
func startLoad(t *testing.T, c *caller, n int, asks []ask, seen func(a ask, answer string, connection *tls.ConnectionState)) *load {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	l := &load{t: t, end: cancel, asks: asks, seen: seen, under: map[int]int{}}
	l.idle = sync.NewCond(&l.mu)
	for i := range n {
		l.joined.Go(func() {
			for n := i; ctx.Err() == nil; n++ {
				l.one(ctx, c, n)
			}
		})
	}
	t.Cleanup(l.stop)
	return l
}

// one sends a request. It is answered also when the load has ended meanwhile.
func (l *load) one(ctx context.Context, c *caller, n int) {
	l.mu.Lock()
	a, round := l.asks[n%len(l.asks)], l.round
	l.under[round]++
	l.mu.Unlock()
	answer, connection := c.get(context.WithoutCancel(ctx), a)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.under[round]--
	l.sent++
	l.seen(a, answer, connection)
	l.idle.Broadcast()
}

// divert replaces all requests from now on by others, and returns when the earlier ones are
// answered.
func (l *load) divert(asks []ask) {
	l.mu.Lock()
	defer l.mu.Unlock()
	before := l.round
	l.asks, l.round = asks, before+1
	for l.under[before] > 0 {
		l.idle.Wait()
	}
}

// goesOn returns when some more requests were answered.
func (l *load) goesOn(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for until := l.sent + n; l.sent < until; {
		l.idle.Wait()
	}
}

// stop ends the load.
func (l *load) stop() {
	l.end()
	l.joined.Wait()
}

// failures are answers that are no body of a backend.
type failures struct {
	mu    sync.Mutex
	first string
	count int
}

func (f *failures) add(a ask, answer string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.count++; f.count == 1 {
		f.first = time.Now().Format(time.StampMilli) + " " + a.host + " at " + a.address + ": " + answer
	}
}

// check reports them.
func (f *failures) check(t *testing.T, of *load) {
	t.Helper()
	of.mu.Lock()
	sent := of.sent
	of.mu.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.count > 0 {
		t.Errorf("%d of %d requests have failed, the first one %s", f.count, sent, f.first)
	}
	if sent == 0 {
		t.Error("there were no requests")
	}
	t.Logf("%d requests", sent)
}
