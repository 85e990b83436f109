// SPDX-License-Identifier: Apache-2.0

package realenvoy

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
	"time"

	"go.uber.org/atomic"
)

// report is a reporter's description of a request.
type report struct {
	By, Host, Path string
	Header         http.Header
}

// reporter is a backend that responds with a description of the request. Headers of a request delay
// the response ("x-wait", a duration), or make it fail with 503 a number of times ("x-fail", for
// the request in "x-request-id").
type reporter struct {
	*httptest.Server
	name     string
	requests atomic.Int64
	failing  atomic.Bool // all requests, with 500
	mu       sync.Mutex
	failed   map[string]int
}

func startReporter(tb testing.TB, name string) *reporter {
	tb.Helper()
	r := newReporter(name)
	r.Start()
	tb.Cleanup(r.Close)
	return r
}

// startTLSReporter starts one that is to be called by TLS.
func startTLSReporter(t *testing.T, name string, config *tls.Config) *reporter {
	t.Helper()
	r := newReporter(name)
	r.TLS = config
	r.StartTLS()
	t.Cleanup(r.Close)
	return r
}

func newReporter(name string) *reporter {
	r := &reporter{name: name, failed: make(map[string]int)}
	r.Server = httptest.NewUnstartedServer(http.HandlerFunc(r.handle))
	r.Config.ErrorLog = log.New(io.Discard, "", 0) // Handshakes fail on purpose.
	return r
}

func (r *reporter) handle(w http.ResponseWriter, req *http.Request) {
	r.requests.Inc()
	if d, err := time.ParseDuration(req.Header.Get("x-wait")); err == nil {
		select {
		case <-time.After(d):
		case <-req.Context().Done():
		}
	}
	if r.failing.Load() {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	if r.fails(req) {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("x-backend", r.name)
	_ = json.NewEncoder(w).Encode(report{r.name, req.Host, req.URL.RequestURI(), req.Header})
}

func (r *reporter) fails(req *http.Request) bool {
	times, _ := strconv.Atoi(req.Header.Get("x-fail"))
	r.mu.Lock()
	defer r.mu.Unlock()
	id := req.Header.Get("x-request-id")
	if r.failed[id] >= times {
		return false
	}
	r.failed[id]++
	return true
}

func (r *reporter) port() string { return portOf(r.Listener) }

// endpoint is the reporter as one of a ServiceEntry whose port is called "p".
func (r *reporter) endpoint(more string) string {
	return fmt.Sprintf("{address: 127.0.0.1, ports: {p: %s}, labels: {version: %s}%s}", r.port(), r.name, more)
}
