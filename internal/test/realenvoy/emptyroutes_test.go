// SPDX-License-Identifier: Apache-2.0

package realenvoy

import (
	"net/http"
	"testing"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"

	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/internal/test/envoyproxy"
	"github.com/pilotkit/pilotkit/internal/xdsbuild"
	"github.com/pilotkit/pilotkit/registry"
)

// routedListener is a listener of the program's, on any port, that serves HTTP by a route
// configuration of the server.
func routedListener(routes string) *listenerv3.Listener {
	return &listenerv3.Listener{
		Name: routes, Address: envoyproxy.Address("127.0.0.1", 0),
		FilterChains: []*listenerv3.FilterChain{
			xdsbuild.FilterChain(nil, nil, xdsbuild.GatewayConnectionManager(routes, registry.ProtocolHTTP, nil, xdsbuild.HTTPOptions{})),
		},
	}
}

// TestRoutesThatAreGone: a sidecar starts with a listener of the host even if the last service of
// its port was deleted, or a Sidecar does not import it; it serves services that are added later.
func TestRoutesThatAreGone(t *testing.T) {
	eachProtocol(t, func(t *testing.T, delta bool) {
		t.Helper()
		p := startPlane(t, planeOptions{mesh: withoutMeshTLS()})
		backend := startBackend(t, "one")
		start := func() *envoyproxy.Proxy {
			t.Helper()
			proxy := envoyproxy.Start(t, envoyproxy.Options{
				Server: p.Address, Delta: delta, OwnListeners: true, Listeners: []*listenerv3.Listener{routedListener("80")},
				Node: envoyproxy.Node{Kind: "sidecar", Name: "web", Namespace: "ingress"},
			})
			proxy.AwaitReady()
			for name, n := range proxy.Stats("init_fetch_timeout$") {
				if n > 0 {
					t.Errorf("something was waited for that did not come: %s", name)
				}
			}
			return proxy
		}
		answers := func(proxy *envoyproxy.Proxy, want int) {
			t.Helper()
			proxy.Await(http.StatusText(want), func() bool {
				status, err := statusOf(t, proxy.Listeners()["80"], "shop.local.test")
				return err == nil && status == want
			})
		}
		only := func(egress string) string {
			return `
apiVersion: networking.istio.io/v1
kind: Sidecar
metadata: {name: default, namespace: ingress}
spec: {egress: [{port: {number: ` + egress + `, name: p, protocol: HTTP}, hosts: ["./*"]}]}
`
		}
		p.Apply(only("81"))
		p.Applied()
		first := start()
		answers(first, http.StatusNotFound)
		p.Apply(only("80") + "---" + serviceEntry("shop.local.test", "HTTP", backend))
		answers(first, http.StatusOK)
		answers(start(), http.StatusOK)
		p.Delete(istio.ServiceEntry, "ingress", "shop.local.test")
		p.Apply(only("81"))
		answers(first, http.StatusNotFound)
		p.Applied()
		answers(start(), http.StatusNotFound)
		p.Accepted()
	})
}

// statusOf sends a request for a host to an address.
func statusOf(t *testing.T, address, host string) (int, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+"/", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	req.Host = host
	res, err := newTransport(t).RoundTrip(req)
	if err != nil {
		return 0, err
	}
	return res.StatusCode, res.Body.Close()
}
