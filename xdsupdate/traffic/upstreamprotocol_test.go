// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	http "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
)

// upstreamProtocol says what a cluster speaks to its endpoints.
func upstreamProtocol(t *testing.T, c *clusterv3.Cluster) string {
	t.Helper()
	packed := c.GetTypedExtensionProtocolOptions()["envoy.extensions.upstreams.http.v3.HttpProtocolOptions"]
	if packed == nil {
		return "HTTP/1.1"
	}
	var options http.HttpProtocolOptions
	if err := packed.UnmarshalTo(&options); err != nil {
		t.Fatal(err)
	}
	switch {
	case options.GetUseDownstreamProtocolConfig() != nil:
		return "the client's"
	case options.GetExplicitHttpConfig().GetHttp2ProtocolOptions() != nil:
		return "HTTP/2"
	default:
		return "HTTP/1.1"
	}
}

// TestUpstreamProtocol: a sidecar speaks to a port without protocol what its client
// speaks to it. A gateway does not, because browsers speak HTTP/2 to it whatever is
// behind: HTTP/1.1, unless the port or a policy says otherwise.
func TestUpstreamProtocol(t *testing.T) {
	const rule = `
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: cart}
spec:
  host: cart
  trafficPolicy: {connectionPool: {http: `
	for _, tc := range []struct {
		name            string
		protocol        registry.Protocol
		policy          string
		sidecar, router string
	}{
		{"no protocol", registry.ProtocolUnsupported, "", "the client's", "HTTP/1.1"},
		{"no protocol, upgraded", registry.ProtocolUnsupported, "{h2UpgradePolicy: UPGRADE}", "HTTP/2", "HTTP/2"},
		{"no protocol, not upgraded", registry.ProtocolUnsupported, "{h2UpgradePolicy: DO_NOT_UPGRADE}", "the client's", "HTTP/1.1"},
		{"no protocol, that of the client asked for", registry.ProtocolUnsupported, "{useClientProtocol: true}", "the client's", "the client's"},
		{"no protocol, a limit", registry.ProtocolUnsupported, "{maxRequestsPerConnection: 7}", "the client's", "HTTP/1.1"},
		{"HTTP", registry.ProtocolHTTP, "", "HTTP/1.1", "HTTP/1.1"},
		{"HTTP2", registry.ProtocolHTTP2, "", "HTTP/2", "HTTP/2"},
		{"GRPC", registry.ProtocolGRPC, "", "HTTP/2", "HTTP/2"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newScene(t, traffic.Options{})
			s.service(&registry.Service{
				Hostname: "cart.shop.svc.cluster.local", Ports: []*registry.Port{{Name: "p", Number: 80, Protocol: tc.protocol}},
			})
			if tc.policy != "" {
				s.apply(rule + tc.policy + "}}")
			}
			for kind, want := range map[string]string{"sidecar": tc.sidecar, "router": tc.router} {
				if got := upstreamProtocol(t, s.cluster(node(kind), "outbound|80||cart.shop.svc.cluster.local")); got != want {
					t.Errorf("a %s speaks %s, want %s", kind, got, want)
				}
			}
		})
	}
}
