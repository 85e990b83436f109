// SPDX-License-Identifier: Apache-2.0

package realenvoy

import (
	"errors"
	"strings"
	"testing"

	"github.com/pilotkit/pilotkit/internal/test/testserver"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
)

// TestTakenPort: a listener whose port another process has is refused by itself, and
// shown until the port is free, when it is tried again without any change.
func TestTakenPort(t *testing.T) {
	eachProtocol(t, func(t *testing.T, delta bool) {
		t.Helper()
		taken := testserver.Listen(t, "127.0.0.1:0")
		defer taken.Close()
		s := newShared(t)
		s.route("a", "prefix: /", "hello")
		s.Apply(`
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: other, namespace: ingress}
spec:
  selector: {app: edge}
  servers:
  - {port: {number: PORT, name: http, protocol: HTTP}, bind: 127.0.0.1, hosts: [b.example.com]}
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: b, namespace: ingress}
spec:
  hosts: [b.example.com]
  gateways: [other]
  http: [{directResponse: {status: 200, body: {string: freed}}}]
`, "PORT", portOf(taken))
		s.proxy = s.edge(delta)
		s.answers("a", "hello")
		if err := s.Server.WaitApplied(s.context(), nil); !errors.Is(err, ads.ErrRejected) || !strings.Contains(err.Error(), "cannot bind") {
			t.Errorf("WaitApplied = %v, want that the port is taken", err)
		}
		s.route("a", "prefix: /api", "changed")
		s.answers("a", "changed")
		if err := taken.Close(); err != nil {
			t.Fatal(err)
		}
		s.port = portOf(taken)
		s.proxy.Await("the port is taken over", func() bool { return s.get("b") == "freed" })
		s.Applied()
	})
}
