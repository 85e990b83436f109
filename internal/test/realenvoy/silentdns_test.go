// SPDX-License-Identifier: Apache-2.0

package realenvoy

import (
	"net"
	"testing"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	cares "github.com/envoyproxy/go-control-plane/envoy/extensions/network/dns_resolver/cares/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/pilotkit/pilotkit/internal/test/envoyproxy"
)

// silentTenant shares the gateway with others, and calls a service of its own.
const silentTenant = `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: silent, namespace: ingress}
spec:
  hosts: [silent.example.org]
  resolution: DNS
  ports: [{number: 80, name: p, protocol: HTTP}]
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: silent, namespace: ingress}
spec:
  hosts: [silent.example.com]
  gateways: [edge]
  http: [{route: [{destination: {host: silent.example.org}}]}]
`

// TestSilentDNS: a service whose DNS server does not respond delays Envoy's ACK of clusters by a
// minute, but does not delay new services of others, even if the routes to both are in one route
// configuration.
func TestSilentDNS(t *testing.T) {
	eachProtocol(t, func(t *testing.T, delta bool) {
		t.Helper()
		o := envoyproxy.Options{Delta: delta, Resolver: &cares.CaresDnsResolverConfig{Resolvers: []*core.Address{startSilentDNS(t)}}}
		e := startEdgeOf(t, o, rules("  - directResponse: {status: 200}\n"))
		e.Apply(silentTenant)
		e.Flush()
		for _, name := range []string{"a", "b", "c"} {
			backend := startReporter(t, name)
			begun := time.Now()
			e.Apply(service(name, "HTTP", backend.endpoint("")) + "---" + rules("  - route: [{destination: {host: "+name+".local.test}}]\n"))
			e.await("answer of "+name, func() bool { return e.who("/") == name })
			took := time.Since(begun)
			if t.Logf("%s answers after %v", name, took); took > soon {
				t.Errorf("%s answers after %v", name, took)
			}
		}
		e.Accepted()

		// An Envoy that starts does nothing before its resolver has given up: the bootstrap
		// says when.
		e.proxy.Stop()
		o.Resolver.QueryTimeoutSeconds, o.Resolver.QueryTries = wrapperspb.UInt64(1), wrapperspb.UInt32(1)
		begun := time.Now()
		e.start(o)
		e.await("answer", func() bool { return e.who("/") == "c" })
		took := time.Since(begun)
		if t.Logf("a new one answers after %v", took); took > soon {
			t.Errorf("a new one answers after %v", took)
		}
	})
}

// startSilentDNS listens for DNS queries until the test ends, and answers none.
func startSilentDNS(t *testing.T) *core.Address {
	t.Helper()
	server, err := (&net.ListenConfig{}).ListenPacket(t.Context(), "udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	return envoyproxy.Address("127.0.0.1", uint32(server.LocalAddr().(*net.UDPAddr).Port)) //nolint:gosec // a port
}
