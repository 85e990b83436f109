// SPDX-License-Identifier: Apache-2.0

package realenvoy

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/internal/test/envoyproxy"
)

// largeExpression compiles to more than the 100 instructions that Envoy allows by default. The
// control plane cannot know the limit of a proxy.
const largeExpression = `/api/v[0-9]{1,3}/[a-zA-Z0-9_-]{1,64}/items`

// shared is a gateway whose plain port tenants share: all their routes are one route
// configuration.
type shared struct {
	*plane
	proxy *envoyproxy.Proxy
	port  string
}

func newShared(t *testing.T) *shared {
	t.Helper()
	s := &shared{plane: startPlane(t, planeOptions{mesh: withoutMeshTLS()}), port: strconv.Itoa(int(envoyproxy.FreePorts(t, 1)[0]))}
	s.Apply(edgeServers+`
  - {port: {number: PORT, name: http, protocol: HTTP}, bind: 127.0.0.1, hosts: ["*"]}
`, "PORT", s.port)
	return s
}

// route has requests for NAME.example.com that match answered with a body.
func (s *shared) route(name, match, body string) {
	s.Apply(`
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: NAME, namespace: ingress}
spec:
  hosts: [NAME.example.com]
  gateways: [edge]
  http: [{match: [{uri: {MATCH}}], directResponse: {status: 200, body: {string: BODY}}}]
`, "NAME", name, "MATCH", match, "BODY", body)
}

// get returns the answer to a request for a tenant: a body, or a status.
func (s *shared) get(name string) string {
	req, err := http.NewRequestWithContext(s.TB.Context(), http.MethodGet, "http://"+local(s.port)+"/api/v1/x/items", http.NoBody)
	if err != nil {
		s.TB.Fatal(err)
	}
	req.Host = name + ".example.com"
	res, err := newTransport(s.TB).RoundTrip(req)
	if err != nil {
		return err.Error()
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	switch {
	case err != nil:
		return err.Error()
	case res.StatusCode != http.StatusOK:
		return strconv.Itoa(res.StatusCode)
	default:
		return string(body)
	}
}

// answers waits until requests for a tenant are answered with something.
func (s *shared) answers(name, want string) {
	s.TB.Helper()
	begun := time.Now()
	for got := ""; got != want; got = s.get(name) {
		if time.Since(begun) > soon {
			s.TB.Fatalf("%s: %q, want %q", name, got, want)
		}
	}
	s.TB.Logf("%s answers %q after %v", name, want, time.Since(begun).Round(time.Millisecond))
}

// leftOut are the objects that some proxy refuses.
func (s *shared) leftOut() []string {
	out := []string{}
	for _, e := range s.policies.Ineffective() {
		if strings.Contains(e.Reason, "refuses") {
			out = append(out, e.Name)
		}
	}
	return out
}

// leavesOut waits until exactly some objects are left out.
func (s *shared) leavesOut(want []string) {
	s.TB.Helper()
	s.proxy.Await(fmt.Sprintf("%q are left out", want), func() bool { return cmp.Equal(s.leftOut(), want) })
}

// TestQuarantine: what only an Envoy can know to be refused costs its own tenant alone,
// when the gateway starts and while it runs.
func TestQuarantine(t *testing.T) {
	eachProtocol(t, func(t *testing.T, delta bool) {
		t.Helper()
		s := newShared(t)
		for i := range 20 {
			s.route(fmt.Sprint("t", i), "prefix: /", "hello")
		}
		s.route("bad", "regex: "+strconv.Quote(largeExpression), "never")
		s.proxy = s.edge(delta)
		s.answers("t0", "hello")
		s.answers("t19", "hello")
		s.answers("bad", "500")
		s.leavesOut([]string{"bad"})

		s.route("t3", "prefix: /api", "changed")
		s.answers("t3", "changed")
		s.answers("bad", "500")
		s.route("worse", "regex: "+strconv.Quote(largeExpression+"?"), "never")
		s.route("t4", "prefix: /api", "changed")
		s.answers("t4", "changed")
		s.answers("worse", "500")
		s.leavesOut([]string{"bad", "worse"})

		s.route("bad", "prefix: /api", "mended")
		s.answers("bad", "mended")
		s.answers("worse", "500")
		s.Delete(istio.VirtualService, "ingress", "worse")
		s.answers("worse", "404")
		s.Applied()
		s.leavesOut([]string{})
	})
}
