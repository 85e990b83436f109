// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	gocmp "github.com/google/go-cmp/cmp"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
)

// describeClusters describes what a proxy gets by its names: "NAME TYPE: ENDPOINTS".
func (s *scene) describeClusters(n *core.Node, names ...string) string {
	s.t.Helper()
	clusters := s.ask(n, envoy.ClusterType, names...)
	if len(names) == 0 {
		names = clusters.names
	}
	assignments := s.ask(n, envoy.LoadAssignmentType, names...)
	var b strings.Builder
	for _, name := range names {
		c, has := clusters.resources[name].(*clusterv3.Cluster)
		if !has {
			fmt.Fprintf(&b, "%s: none\n", name)
			continue
		}
		a, eds := assignments.resources[name].(*endpointv3.ClusterLoadAssignment)
		if eds != (c.GetEdsClusterConfig() != nil) {
			s.t.Errorf("%s: EDS %t, assignment %t", name, !eds, eds)
		}
		if !eds {
			a = c.GetLoadAssignment()
		}
		var addresses []string
		for _, l := range a.GetEndpoints() {
			for _, e := range l.GetLbEndpoints() {
				addresses = append(addresses, e.GetEndpoint().GetAddress().GetSocketAddress().GetAddress())
			}
		}
		slices.Sort(addresses)
		kind := cmp.Or(c.GetClusterType().GetName(), c.GetType().String())
		fmt.Fprintf(&b, "%s %s: %s\n", name, kind, strings.Join(addresses, " "))
	}
	return b.String()
}

// clusterScene has services of all kinds in the namespaces shop and billing.
func clusterScene(tb testing.TB, options traffic.Options, more ...string) *scene {
	tb.Helper()
	cart, hidden := testService("shop", "Cart.example.com", 80, 81), testService("billing", "hidden.example.com", 80)
	hidden.Attributes.ExportTo = []registry.Visibility{"."}
	dns, lone := testService("shop", "dns.example.com", 80), testService("shop", "lone.example.com", 80)
	dns.Resolution, lone.Resolution = registry.DNSLB, registry.DNSLB
	dns.MeshExternal = true
	raw := testService("shop", "raw.example.com", 80)
	raw.Resolution = registry.Passthrough
	w := populate(cart, hidden, dns, lone, raw)
	w.place(cart, "10.0.0.1 version=v1 tls=istio", "10.0.0.2 version=v2")
	w.place(hidden, "10.0.1.1")
	w.place(dns, "a.example.com", "b.example.com")
	rule := `DestinationRule shop/cart {"host":"cart.example.com","subsets":[{"name":"v1","labels":{"version":"v1"}}]}`
	return stage(tb, options, objectsOf(tb, append(more, rule)...), w)
}

func TestClusters(t *testing.T) {
	objects := []string{
		`Gateway ingress/edge {"selector": {"app": "edge"}, "servers": [{"port": {"number": 15443, "name": "tls", "protocol": "TLS"}, "hosts": ["*"], "tls": {"mode": "AUTO_PASSTHROUGH"}}]}`,
		`Gateway ingress/plain {"selector": {"app": "plain"}, "servers": [{"port": {"number": 80, "name": "http", "protocol": "HTTP"}, "hosts": ["*"]}]}`,
		`VirtualService shop/v {"hosts": ["shop.example.com"], "gateways": ["ingress/plain"], "http": [{"route": [{"destination": {"host": "dns.example.com"}}]}]}`,
	}
	const sidecars = `BlackHoleCluster STATIC: 
PassthroughCluster ORIGINAL_DST: 
outbound|80|v1|Cart.example.com EDS: 10.0.0.1
outbound|80||Cart.example.com EDS: 10.0.0.1 10.0.0.2
outbound|80||dns.example.com envoy.clusters.dns: a.example.com b.example.com
outbound|80||raw.example.com ORIGINAL_DST: 
outbound|81|v1|Cart.example.com EDS: 10.0.0.1
outbound|81||Cart.example.com EDS: 10.0.0.1 10.0.0.2
`
	tests := []struct {
		name    string
		client  *core.Node
		options traffic.Options
		want    string
	}{
		{"a sidecar", in("sidecar", "shop"), traffic.Options{}, sidecars},
		{
			"a sidecar of another namespace",
			in("sidecar", "billing"),
			traffic.Options{},
			strings.Replace(sidecars, "outbound|80||raw", "outbound|80||hidden.example.com EDS: 10.0.1.1\noutbound|80||raw", 1),
		},
		{
			"a gateway that passes connections on",
			edge(),
			traffic.Options{},
			`BlackHoleCluster STATIC: 
outbound_.80_._.Cart.example.com EDS: 10.0.0.1
outbound_.80_._.raw.example.com EDS: 
outbound_.80_.v1_.Cart.example.com EDS: 10.0.0.1
outbound_.81_._.Cart.example.com EDS: 10.0.0.1
outbound_.81_.v1_.Cart.example.com EDS: 10.0.0.1
` + strings.Replace(strings.SplitN(sidecars, "\n", 3)[2], "raw.example.com ORIGINAL_DST", "raw.example.com EDS", 1),
		},
		{
			"a gateway with clusters that it uses only",
			in("router", "ingress", "app=plain"),
			traffic.Options{FilterGatewayClusters: true},
			"BlackHoleCluster STATIC: \noutbound|80||dns.example.com envoy.clusters.dns: a.example.com b.example.com\n",
		},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			if diff := gocmp.Diff(tc.want, clusterScene(t, tc.options, objects...).describeClusters(tc.client)); diff != "" {
				t.Errorf("clusters (-want +got):\n%s", diff)
			}
		})
	}
}

// TestNamesThatAreNoClusters: nothing is served under other names, above all
// nothing that the proxy must not see.
func TestNamesThatAreNoClusters(t *testing.T) {
	s := clusterScene(t, traffic.Options{FilterGatewayClusters: true})
	for kind, names := range map[string][]string{
		"sidecar": {
			"outbound|80||hidden.example.com", "outbound|80||cart.example.com", "outbound|82||Cart.example.com", "outbound|80|v9|Cart.example.com",
			"outbound_.80_._.Cart.example.com", "inbound|80||", "Cart.example.com",
		},
		"router": {"outbound|80||Cart.example.com", "outbound_.80_._.Cart.example.com", "PassthroughCluster"},
	} {
		for _, typeURL := range []string{envoy.ClusterType, envoy.LoadAssignmentType} {
			if got := s.ask(in(kind, "shop"), typeURL, names...).names; len(got) > 0 {
				t.Errorf("a %s has %q of %s", kind, got, typeURL)
			}
		}
	}
}

// TestGRPCClientsAreAnswered for every cluster that a route can name, because two
// of the three clients hold back all calls of a target until all its clusters are
// known; a DNS service is one name for them.
func TestGRPCClientsAreAnswered(t *testing.T) {
	s, n := clusterScene(t, traffic.Options{}), in("grpc", "shop")
	got := s.describeClusters(n,
		"outbound|80||Cart.example.com", "outbound|80|v9|Cart.example.com", "outbound|82||Cart.example.com", "outbound|80||hidden.example.com",
		"outbound|80||nowhere.example.com", "outbound|80||dns.example.com", "outbound|80||lone.example.com", "outbound|80||raw.example.com",
		"BlackHoleCluster", "Cart.example.com",
	)
	want := `outbound|80||Cart.example.com EDS: 10.0.0.1 10.0.0.2
outbound|80|v9|Cart.example.com EDS: 
outbound|82||Cart.example.com EDS: 
outbound|80||hidden.example.com EDS: 
outbound|80||nowhere.example.com EDS: 
outbound|80||dns.example.com LOGICAL_DNS: a.example.com
outbound|80||lone.example.com EDS: 
outbound|80||raw.example.com EDS: 
BlackHoleCluster: none
Cart.example.com: none
`
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("clusters (-want +got):\n%s", diff)
	}
	for _, name := range []string{"outbound|80|v9|Cart.example.com", "outbound|80||raw.example.com"} {
		if a := s.assignment(n, name); a.GetClusterName() != name || len(a.GetEndpoints()) != 0 {
			t.Errorf("assignment of %s: %v", name, a)
		}
	}
}

// TestSpellings: entries that spell a host in two ways are one service, whose
// clusters have the name that routes lead to.
func TestSpellings(t *testing.T) {
	one, two := testService("shop", "Cart.example.com", 80), testService("shop", "cart.EXAMPLE.com", 81)
	two.CreationTime = one.CreationTime.Add(1)
	w := populate(one, two)
	w.place(one, "10.0.0.1")
	w.place(two, "10.0.0.2")
	got := stage(t, traffic.Options{}, nil, w).describeClusters(in("sidecar", "shop"))
	want := "BlackHoleCluster STATIC: \nPassthroughCluster ORIGINAL_DST: \noutbound|80||Cart.example.com EDS: 10.0.0.1\noutbound|81||Cart.example.com EDS: 10.0.0.2\n"
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("clusters (-want +got):\n%s", diff)
	}
}

// TestHashOf: the key of a consistent hash comes from the most specific level that
// has one.
func TestHashOf(t *testing.T) {
	header := func(name string) string {
		return `"loadBalancer":{"consistentHash":{"httpHeaderName":"` + name + `"}}`
	}
	asked := []struct {
		port   uint32
		subset string
		want   string
	}{{80, "", "rule"}, {81, "", "port"}, {80, "plain", "rule"}, {81, "plain", "port"}, {81, "own", "subset"}, {82, "own", "both"}}
	var routes, want []string
	for i, a := range asked {
		routes = append(routes, fmt.Sprintf(`{"match":[{"uri":{"exact":"/%d"}}],"route":[{"destination":{"host":"dns.example.com","port":{"number":%d},"subset":%q}}]}`, i, a.port, a.subset))
		want = append(want, a.want)
	}
	s := clusterScene(t, traffic.Options{}, `DestinationRule shop/dns {"host":"dns.example.com","trafficPolicy":{`+header("rule")+`,"portLevelSettings":[{"port":{"number":81},`+header("port")+`}]},
		"subsets":[{"name":"plain"},{"name":"own","trafficPolicy":{`+header("subset")+`,"portLevelSettings":[{"port":{"number":82},`+header("both")+`}]}}]}`,
		`VirtualService shop/v {"hosts":["lone.example.com"],"http":[`+strings.Join(routes, ",")+`]}`)
	var got []string
	for _, r := range hostOf(s.routes(in("sidecar", "shop"), "80"), "lone.example.com").GetRoutes() {
		got = append(got, r.GetRoute().GetHashPolicy()[0].GetHeader().GetHeaderName())
	}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("headers (-want +got):\n%s", diff)
	}
}
