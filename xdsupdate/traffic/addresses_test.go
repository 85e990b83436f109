// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"testing"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
)

// TestAddressesOfServices: proxies that answer DNS queries know the automatically
// allocated address of their family, and proxies in a cluster the addresses that a
// service has there. Policies make no difference in that.
func TestAddressesOfServices(t *testing.T) {
	v6 := func(metadata ...any) *core.Node {
		n := node("sidecar", metadata...)
		n.Id = "sidecar~fd00::1~client.shop~shop.svc.cluster.local"
		return n
	}
	const allocated, own = "outbound|80||auto.example.com", "outbound|80||own.shop.svc.cluster.local"
	for name, s := range map[string]*scene{"built in": newPlainScene(t), "with policies": newScene(t, traffic.Options{})} {
		s.apply(`
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: auto}
spec:
  hosts: [auto.example.com]
  ports: [{number: 80, name: http, protocol: HTTP}]
  resolution: STATIC
status: {addresses: [{host: auto.example.com, value: 240.240.0.5}, {host: auto.example.com, value: "2001:2::f0f0:5"}]}
`)
		s.service(&registry.Service{
			Hostname: "own.shop.svc.cluster.local", DefaultAddress: "10.0.0.1",
			ClusterVIPs: map[registry.ClusterID][]string{"east": {"10.0.0.1"}, "west": {"10.7.0.1", "fd00:7::1"}},
			Ports:       []*registry.Port{{Name: "http", Number: 80, Protocol: registry.ProtocolHTTP}},
		})
		for _, tc := range []struct {
			about         string
			node          *core.Node
			host, cluster string
			known         bool
		}{
			{"no DNS", node("sidecar"), "240.240.0.5", allocated, false},
			{"DNS", node("sidecar", "DNS_CAPTURE", "true"), "240.240.0.5", allocated, true},
			{"DNS, another family", node("sidecar", "DNS_CAPTURE", "true"), "[2001:2::f0f0:5]", allocated, false},
			{"DNS, IPv6", v6("DNS_CAPTURE", "true"), "[2001:2::f0f0:5]", allocated, true},
			{"DNS with the setting", node("sidecar", "DNS_CAPTURE", "true", "DNS_AUTO_ALLOCATE", "true"), "240.240.0.5", allocated, true},
			{"DNS without allocation", node("sidecar", "DNS_CAPTURE", "true", "DNS_AUTO_ALLOCATE", "false"), "240.240.0.5", allocated, false},
			{"the setting without DNS", node("sidecar", "DNS_AUTO_ALLOCATE", "true"), "240.240.0.5", allocated, false},
			{"no cluster", node("sidecar"), "10.0.0.1", own, true},
			{"own cluster", node("sidecar", "CLUSTER_ID", "west"), "10.7.0.1", own, true},
			{"own cluster, another family", node("sidecar", "CLUSTER_ID", "west"), "[fd00:7::1]", own, false},
			{"own cluster, IPv6", v6("CLUSTER_ID", "west"), "[fd00:7::1]", own, true},
			{"address of another cluster", node("sidecar", "CLUSTER_ID", "west"), "10.0.0.1", own, false},
		} {
			if got := clusterOf(s.routes(tc.node, "80"), tc.host) == tc.cluster; got != tc.known {
				t.Errorf("%s, %s: %s leads to the service: %t", name, tc.about, tc.host, got)
			}
		}
	}
}
