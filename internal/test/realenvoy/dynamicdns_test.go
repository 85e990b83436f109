// SPDX-License-Identifier: Apache-2.0

package realenvoy

import "testing"

const anyLocalhost = `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: any, namespace: ingress}
spec:
  hosts: ["*.localhost"]
  location: MESH_EXTERNAL
  resolution: DYNAMIC_DNS
  ports: [{number: 80, name: p, protocol: HTTP}]
`

// TestDynamicDNS: an Envoy looks up the host that a request names, and calls its port,
// without a filter in the listener of its host.
func TestDynamicDNS(t *testing.T) {
	eachProtocol(t, func(t *testing.T, delta bool) {
		t.Helper()
		one, two := startReporter(t, "one"), startReporter(t, "two")
		s := startSidecar(t, delta, anyLocalhost)
		for host, want := range map[string]string{"a.localhost:" + one.port(): "one", "b.localhost:" + two.port(): "two"} {
			if got := s.who("/", "host", host); got != want {
				t.Errorf("%s: %s, want %s", host, got, want)
			}
		}
		s.fine()
	})
}
