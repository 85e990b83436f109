// SPDX-License-Identifier: Apache-2.0

package realenvoy

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
)

const toShop = `
  - route: [{destination: {host: shop.local.test}}]
`

// counts returns how often each backend answers n requests.
func (e *edge) counts(n int) map[string]int {
	e.TB.Helper()
	out := make(map[string]int)
	for range n {
		out[e.who("/")]++
	}
	return out
}

// TestWeights: requests are shared by the weights of a rule, and by others when these
// change. A correct Envoy is beyond the bounds once in a million times.
func TestWeights(t *testing.T) {
	eachProtocol(t, func(t *testing.T, delta bool) {
		t.Helper()
		one, two := startReporter(t, "one"), startReporter(t, "two")
		weighted := func(first, second int) string {
			return rules(fmt.Sprintf(`
  - route:
    - {destination: {host: shop.local.test, subset: one}, weight: %d}
    - {destination: {host: shop.local.test, subset: two}, weight: %d}
`, first, second))
		}
		e := startEdge(t, delta, service("shop", "HTTP", one.endpoint(""), two.endpoint(""))+"---"+policy("shop", oneAndTwo)+"---"+weighted(90, 10))
		const n = 1000
		if got := e.counts(n); got["one"]+got["two"] != n || got["two"] < 50 || got["two"] > 155 {
			t.Errorf("of %d requests %v, want 90 %% for one", n, got)
		}
		e.Apply(weighted(1, 1))
		e.Applied()
		if got := e.counts(n); got["one"]+got["two"] != n || got["two"] < 420 || got["two"] > 580 {
			t.Errorf("of %d requests %v, want a half for one", n, got)
		}
		e.fine()
	})
}

// TestHashing: requests with one value of a header have one backend, and different
// values have several; most keep theirs when another endpoint leaves.
func TestHashing(t *testing.T) {
	eachProtocol(t, func(t *testing.T, delta bool) {
		t.Helper()
		var endpoints []string
		for i := range 4 {
			endpoints = append(endpoints, startReporter(t, fmt.Sprint("b", i)).endpoint(""))
		}
		e := startEdge(t, delta, service("shop", "HTTP", endpoints...)+"---"+
			policy("shop", "  trafficPolicy: {loadBalancer: {consistentHash: {httpHeaderName: x-user}}}\n")+"---"+rules(toShop))
		owners, seen := make(map[string]string), make(map[string]bool)
		for round := range 3 {
			for user := range 40 {
				id := fmt.Sprint("user", user)
				by := e.who("/", "x-user", id)
				if round > 0 && owners[id] != by {
					t.Errorf("%s: %s, before %s", id, by, owners[id])
				}
				owners[id], seen[by] = by, true
			}
		}
		if len(seen) != 4 {
			t.Errorf("only %v have users", seen)
		}
		e.Apply(service("shop", "HTTP", endpoints[1:]...))
		e.Applied()
		moved := 0 // The ring of fewer endpoints has more points of each, so that some move.
		for id, owner := range owners {
			if by := e.who("/", "x-user", id); owner != "b0" && by != owner {
				moved++
			}
		}
		if moved > len(owners)/3 {
			t.Errorf("%d of %d have moved", moved, len(owners))
		}
		e.fine()
	})
}

// TestOutliers: a failing backend is ejected, and backends of another region serve when the near
// ones are ejected.
func TestOutliers(t *testing.T) {
	eachProtocol(t, func(t *testing.T, delta bool) {
		t.Helper()
		near, other, far := startReporter(t, "near"), startReporter(t, "other"), startReporter(t, "far")
		e := startEdge(t, delta, service("shop", "HTTP",
			near.endpoint(", locality: us/a/1"), other.endpoint(", locality: us/a/1"), far.endpoint(", locality: eu/a/1"))+"---"+
			policy("shop", "  trafficPolicy: {outlierDetection: {consecutive5xxErrors: 3, interval: 1s, baseEjectionTime: 300s, maxEjectionPercent: 100}}\n")+
			"---"+rules(toShop))
		if got := e.counts(40); got["near"]+got["other"] != 40 || got["near"] == 0 || got["other"] == 0 {
			t.Errorf("in the region: %v", got)
		}
		near.failing.Store(true)
		// With half of the region ejected Envoy sends a part of the requests to the next.
		e.await("requests for others only", func() bool { got := e.counts(20); return got["other"]+got["far"] == 20 })
		other.failing.Store(true)
		e.await("requests for the other region only", func() bool { return e.counts(20)["far"] == 20 })
		e.fine()
	})
}

// TestLimits: requests over the limits of a connection pool are rejected at once.
func TestLimits(t *testing.T) {
	eachProtocol(t, func(t *testing.T, delta bool) {
		t.Helper()
		e := startEdge(t, delta, service("shop", "HTTP", startReporter(t, "one").endpoint(""))+"---"+
			policy("shop", "  trafficPolicy: {connectionPool: {tcp: {maxConnections: 1}, http: {http1MaxPendingRequests: 1}}}\n")+"---"+rules(toShop))
		var running sync.WaitGroup
		var mu sync.Mutex
		status := make(map[int]int)
		for range 12 {
			running.Go(func() {
				got, err := e.call(http.MethodGet, "/", "x-wait", "0.3s")
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					t.Error(err)
					return
				}
				status[got.StatusCode]++
				if got.StatusCode == http.StatusServiceUnavailable && !strings.Contains(got.body, "overflow") {
					t.Errorf("503 because of %q", got.body)
				}
			})
		}
		running.Wait()
		if status[http.StatusOK] == 0 || status[http.StatusServiceUnavailable] < 6 || len(status) != 2 {
			t.Errorf("status: %v", status)
		}
		e.fine()
	})
}
