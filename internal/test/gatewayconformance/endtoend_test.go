// SPDX-License-Identifier: Apache-2.0

package gatewayconformance

import (
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"math"
	"math/big"
	"strings"
	"sync"
	"testing"

	"github.com/pilotkit/pilotkit/internal/test/authority"
)

const web = "[{name: web, port: 80, protocol: HTTP}]"

// TestEndToEnd changes the routes of Gateways while requests go through their Envoys: none of them
// fails.
func TestEndToEnd(t *testing.T) {
	if !isInside() {
		require(t)
		enter(t)
		return
	}
	cluster := startCluster(t)
	t.Run("Weights", func(t *testing.T) { testWeights(newScene(t, cluster, "weights")) })
	t.Run("Refused", func(t *testing.T) { testRefused(newScene(t, cluster, "refused")) })
	t.Run("Moved", func(t *testing.T) { testMoved(newScene(t, cluster, "moved")) })
	t.Run("Rotated", func(t *testing.T) { testRotated(newScene(t, cluster, "rotated")) })
}

// testWeights: requests are distributed by the weights, also after these change under load.
func testWeights(s *scene) {
	for _, name := range []string{"one", "two", "none"} {
		s.backend(name)
	}
	address := s.gateway("edge", web)
	weigh := func(one, two int) {
		s.route("cart", "[{name: edge}]", fmt.Sprintf("[{backendRefs: [{name: one, port: 80, weight: %d}, {name: two, port: 80, weight: %d}, {name: none, port: 80, weight: 0}]}]", one, two))
	}
	weigh(7, 3)
	c, cart := newCaller(s.t, nil), ask{address, "cart.example.com"}
	s.eventually("the route answers", func() bool { answer, _ := c.get(s.t.Context(), cart); return answer == "one" || answer == "two" })
	var (
		lost   failures
		counts = map[string]int{}
	)
	l := startLoad(s.t, c, callers, []ask{cart}, func(a ask, answer string, _ *tls.ConnectionState) {
		if counts[answer]++; answer != "one" && answer != "two" {
			lost.add(a, answer)
		}
	})
	take := func(n int) (share float64) {
		l.mu.Lock()
		clear(counts)
		l.mu.Unlock()
		l.goesOn(n)
		l.mu.Lock()
		defer l.mu.Unlock()
		return float64(counts["one"]) / float64(counts["one"]+counts["two"])
	}
	// Six standard deviations of 2,000 requests.
	near := func(share, want float64) bool { return math.Abs(share-want) < 6*math.Sqrt(want*(1-want)/2000) }
	if share := take(2000); !near(share, 0.7) {
		s.t.Errorf("of weights 7 and 3 the first one has a share of %.3f", share)
	}
	weigh(1, 9)
	s.eventually("the weights change", func() bool { return take(100) < 0.4 })
	if share := take(2000); !near(share, 0.1) {
		s.t.Errorf("of weights 1 and 9 the first one has a share of %.3f", share)
	}
	l.stop()
	lost.check(s.t, l)
}

// largeExpression is one that Envoy compiles to more than the 100 instructions that it allows.
const largeExpression = `/api/v[0-9]{1,3}/[a-zA-Z0-9_-]{1,64}/items`

// testRefused: a route that Envoy refuses says so in its status, with Envoy's words, until it is
// mended; all others go on.
func testRefused(s *scene) {
	s.backend("cart")
	address := s.gateway("edge", web)
	const rules = "[{backendRefs: [{name: cart, port: 80}]}]"
	var good []ask
	c := newCaller(s.t, nil)
	for i := range 10 {
		name := fmt.Sprint("good", i)
		s.route(name, "[{name: edge}]", rules)
		good = append(good, ask{address, name + ".example.com"})
	}
	answers := func(a ask, want string) {
		s.t.Helper()
		s.eventually(a.host+" answers "+want, func() bool { answer, _ := c.get(s.t.Context(), a); return answer == want })
	}
	for _, a := range good {
		answers(a, "cart")
	}
	var lost failures
	l := startLoad(s.t, c, callers, good, func(a ask, answer string, _ *tls.ConnectionState) {
		if answer != "cart" {
			lost.add(a, answer)
		}
	})
	bad := ask{address, "bad.example.com"}
	for range 3 {
		s.route("bad", "[{name: edge}]", "[{matches: [{path: {type: RegularExpression, value: '"+largeExpression+"'}}], backendRefs: [{name: cart, port: 80}]}]")
		s.eventually("the status says what Envoy says", func() bool {
			status := s.accepted("bad", "edge")
			return strings.HasPrefix(status, "False RefusedByProxy a proxy refuses it: ") && strings.Contains(status, "program size")
		})
		answers(bad, "500")
		for i := range good {
			if status := s.accepted(fmt.Sprint("good", i), "edge"); !strings.HasPrefix(status, "True") {
				s.t.Errorf("good%d: %s", i, status)
			}
		}
		s.route("good0", "[{name: edge}]", "[{filters: [{type: ResponseHeaderModifier, responseHeaderModifier: {set: [{name: a, value: b}]}}], backendRefs: [{name: cart, port: 80}]}]")
		s.route("bad", "[{name: edge}]", rules)
		s.eventually("the status of the mended route", func() bool { return strings.HasPrefix(s.accepted("bad", "edge"), "True Accepted") })
		answers(bad, "cart")
		s.route("good0", "[{name: edge}]", rules)
	}
	l.stop()
	lost.check(s.t, l)
}

// testMoved: a route that goes to another Gateway in one edit is answered there for good once it is
// answered, and here until it is not found; one that is served by both in between loses no request of
// clients that go where its status says. Nothing happens to a neighbour.
func testMoved(s *scene) {
	s.backend("cart")
	addresses := map[string]string{"left": s.gateway("left", web), "right": s.gateway("right", web)}
	const rules, host = "[{backendRefs: [{name: cart, port: 80}]}]", "cart.example.com"
	s.route("neighbour", "[{name: left}, {name: right}]", rules)
	s.route("cart", "[{name: left}]", rules)
	c := newCaller(s.t, nil)
	answers := func(gateway, host, want string) {
		s.t.Helper()
		s.eventually(host+" at "+gateway+" answers "+want, func() bool {
			answer, _ := c.get(s.t.Context(), ask{addresses[gateway], host})
			return answer == want
		})
	}
	for name := range addresses {
		answers(name, "neighbour.example.com", "cart")
	}
	answers("left", host, "cart")
	neighbours := []ask{{addresses["left"], "neighbour.example.com"}, {addresses["right"], "neighbour.example.com"}}
	var lost failures
	fails := func(a ask, answer string, _ *tls.ConnectionState) {
		if answer != "cart" {
			lost.add(a, answer)
		}
	}
	others := startLoad(s.t, c, callers, neighbours, fails)
	s.t.Run("ByWayOfBoth", func(t *testing.T) {
		l := startLoad(t, newCaller(t, nil), callers, []ask{{addresses["left"], host}}, fails)
		from, to := "left", "right"
		for range 4 {
			s.route("cart", "[{name: left}, {name: right}]", rules)
			s.eventually("the route is accepted there", func() bool { return strings.HasPrefix(s.accepted("cart", to), "True") })
			answers(to, host, "cart")
			l.divert([]ask{{addresses[to], host}})
			s.route("cart", "[{name: "+to+"}]", rules)
			answers(from, host, "404")
			from, to = to, from
		}
		l.stop()
		lost.check(t, l)
	})
	s.t.Run("AtOnce", func(t *testing.T) { s.testMovedAtOnce(t, addresses, answers) })
	others.stop()
	lost.check(s.t, others)
}

// testMovedAtOnce watches a route that goes from one Gateway to the other one and back.
func (s *scene) testMovedAtOnce(t *testing.T, addresses map[string]string, answers func(gateway, host, want string)) {
	t.Helper()
	const rules, host = "[{backendRefs: [{name: cart, port: 80}]}]", "cart.example.com"
	from, to := "left", "right"
	for range 4 {
		s.route("cart", "[{name: "+from+"}]", rules)
		answers(from, host, "cart")
		answers(to, host, "404")
		var (
			lost failures
			mu   sync.Mutex
			over = map[string]bool{} // by address: the answer is another one than in the beginning
		)
		// At each Gateway one request follows the other.
		watch := func(gateway, before, after string) *load {
			a := ask{addresses[gateway], host}
			return startLoad(t, newCaller(t, nil), 1, []ask{a}, func(a ask, answer string, _ *tls.ConnectionState) {
				mu.Lock()
				defer mu.Unlock()
				switch {
				case answer == after:
					over[gateway] = true
				case answer != before:
					lost.add(a, answer)
				case over[gateway]:
					lost.add(a, answer+" once more")
				}
			})
		}
		here, there := watch(from, "cart", "404"), watch(to, "404", "cart")
		s.route("cart", "[{name: "+to+"}]", rules)
		s.eventually("the route has moved", func() bool {
			mu.Lock()
			defer mu.Unlock()
			return over[from] && over[to]
		})
		here.stop()
		there.stop()
		lost.check(t, here)
		from, to = to, from
	}
}

// testRotated: new connections get a rotated certificate, and none fails.
func testRotated(s *scene) {
	s.backend("cart")
	issuer := authority.New(s.t)
	rotate := func() (serial *big.Int) {
		certificate, key := issuer.Issue("cart.example.com")
		pair, err := tls.X509KeyPair(certificate, key)
		if err != nil {
			s.t.Fatal(err)
		}
		s.apply(`
apiVersion: v1
kind: Secret
metadata: {name: cart}
type: kubernetes.io/tls
data: {tls.crt: CERTIFICATE, tls.key: KEY}
`, "CERTIFICATE", base64.StdEncoding.EncodeToString(certificate), "KEY", base64.StdEncoding.EncodeToString(key))
		return pair.Leaf.SerialNumber
	}
	present := rotate()
	address := s.gateway("edge", "[{name: web, port: 443, protocol: HTTPS, tls: {certificateRefs: [{name: cart}]}}]")
	s.route("cart", "[{name: edge}]", "[{backendRefs: [{name: cart, port: 80}]}]")
	c := newCaller(s.t, &tls.Config{RootCAs: issuer.Pool(), ServerName: "cart.example.com", MinVersion: tls.VersionTLS12})
	cart := ask{address + ":443", "cart.example.com"}
	s.eventually("the route answers", func() bool { answer, _ := c.get(s.t.Context(), cart); return answer == "cart" })
	var (
		lost failures
		last *big.Int
	)
	l := startLoad(s.t, c, callers, []ask{cart}, func(a ask, answer string, connection *tls.ConnectionState) {
		if answer != "cart" {
			lost.add(a, answer)
			return
		}
		last = connection.PeerCertificates[0].SerialNumber
	})
	for range 5 {
		before := present
		present = rotate()
		s.eventually("new connections have the new certificate", func() bool {
			l.goesOn(1)
			l.mu.Lock()
			defer l.mu.Unlock()
			return last.Cmp(present) == 0
		})
		l.divert([]ask{cart}) // What began before is over.
		l.mu.Lock()
		seen := l.seen
		l.seen = func(a ask, answer string, connection *tls.ConnectionState) {
			if seen(a, answer, connection); last.Cmp(before) == 0 {
				lost.add(a, "the certificate of before")
			}
		}
		l.mu.Unlock()
		l.goesOn(50)
		l.mu.Lock()
		l.seen = seen
		l.mu.Unlock()
	}
	l.stop()
	lost.check(s.t, l)
}
