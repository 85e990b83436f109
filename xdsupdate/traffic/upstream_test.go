// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	stdcmp "cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/internal/xdscheck"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// place puts endpoints, "ADDRESS key=value …", behind all ports of a service.
func (w *listWorld) place(s *registry.Service, endpoints ...string) {
	var list []*registry.Endpoint
	for _, text := range endpoints {
		fields := strings.Fields(text)
		labels := registry.Labels{}
		for _, f := range fields[1:] {
			key, value, _ := strings.Cut(f, "=")
			labels[key] = value
		}
		for _, p := range s.Ports {
			list = append(list, &registry.Endpoint{
				Addresses: []string{fields[0]}, EndpointPort: p.Number, ServicePort: p.Number, ServicePortName: p.Name,
				Shared: &registry.EndpointAttributes{Labels: labels, TLSMode: labels["tls"]},
			})
		}
	}
	w.index.UpdateServiceEndpoints(xdsupdate.ShardKey{Provider: registry.External}, s.Hostname, s.Attributes.Namespace, list)
}

// describeClusters describes what a proxy gets by its names: "NAME TYPE: ENDPOINTS".
func describeClusters(st *state, p *proxy, names []string) string {
	var b strings.Builder
	for _, name := range names {
		c := st.cluster(p, name)
		if c == nil {
			fmt.Fprintf(&b, "%s: none\n", name)
			continue
		}
		a := st.assignment(p, name)
		err := errors.Join(accepted(p, c), accepted(p, a))
		if a == nil {
			a = c.GetLoadAssignment()
		}
		if err != nil {
			fmt.Fprintf(&b, "%s: %v\n", name, err)
		}
		var addresses []string
		for _, l := range a.GetEndpoints() {
			for _, e := range l.GetLbEndpoints() {
				addresses = append(addresses, e.GetEndpoint().GetAddress().GetSocketAddress().GetAddress())
			}
		}
		slices.Sort(addresses)
		kind := stdcmp.Or(c.GetClusterType().GetName(), c.GetType().String())
		fmt.Fprintf(&b, "%s %s: %s\n", name, kind, strings.Join(addresses, " "))
	}
	return b.String()
}

// accepted returns why a proxy would refuse a resource.
func accepted(p *proxy, m proto.Message) error {
	switch {
	case !m.ProtoReflect().IsValid():
		return nil
	case p.role == grpcClient:
		return xdscheck.GRPC(m)
	default:
		return xdscheck.Envoy(m)
	}
}

// clusterWorld has services of all kinds in the namespaces shop and billing.
func clusterWorld(tb testing.TB) (*listWorld, configList) {
	tb.Helper()
	cart, hidden := testService("shop", "Cart.example.com", 80, 81), testService("billing", "hidden.example.com", 80)
	hidden.Attributes.ExportTo = []registry.Visibility{"."}
	dns, lone := testService("shop", "dns.example.com", 80), testService("shop", "lone.example.com", 80)
	dns.Resolution, lone.Resolution = registry.DNSLB, registry.DNSLB
	dns.MeshExternal = true
	raw := testService("shop", "raw.example.com", 80)
	raw.Resolution = registry.Passthrough
	w := newListWorld(cart, hidden, dns, lone, raw)
	w.place(cart, "10.0.0.1 version=v1 tls=istio", "10.0.0.2 version=v2")
	w.place(hidden, "10.0.1.1")
	w.place(dns, "a.example.com", "b.example.com")
	var configs configList
	configs.addRule(tb, "shop/cart", `{"host":"cart.example.com","subsets":[{"name":"v1","labels":{"version":"v1"}}]}`)
	return w, configs
}

func TestClusters(t *testing.T) {
	w, configs := clusterWorld(t)
	configs.add(istio.Gateway, "ingress/edge", &networking.Gateway{
		Selector: map[string]string{"app": "edge"},
		Servers: []*networking.Server{{
			Port: &networking.Port{Number: 15443, Name: "tls", Protocol: "TLS"}, Hosts: []string{"*"},
			Tls: &networking.ServerTLSSettings{Mode: networking.ServerTLSSettings_AUTO_PASSTHROUGH},
		}},
	})
	configs.add(istio.Gateway, "ingress/plain", &networking.Gateway{
		Selector: map[string]string{"app": "plain"},
		Servers:  []*networking.Server{{Port: &networking.Port{Number: 80, Name: "http", Protocol: "HTTP"}, Hosts: []string{"*"}}},
	})
	configs.add(istio.VirtualService, "shop/v", &networking.VirtualService{
		Hosts: []string{"shop.example.com"}, Gateways: []string{"ingress/plain"},
		Http: []*networking.HTTPRoute{{Route: []*networking.HTTPRouteDestination{{Destination: &networking.Destination{Host: "dns.example.com"}}}}},
	})
	const sidecars = `BlackHoleCluster STATIC: 
PassthroughCluster ORIGINAL_DST: 
outbound|80|v1|Cart.example.com EDS: 10.0.0.1
outbound|80||Cart.example.com EDS: 10.0.0.1 10.0.0.2
outbound|80||dns.example.com envoy.clusters.dns: a.example.com b.example.com
outbound|80||lone.example.com: none
outbound|80||raw.example.com ORIGINAL_DST: 
outbound|81|v1|Cart.example.com EDS: 10.0.0.1
outbound|81||Cart.example.com EDS: 10.0.0.1 10.0.0.2
`
	tests := []struct {
		name    string
		proxy   proxy
		options Options
		want    string
	}{
		{"a sidecar", proxy{namespace: "shop"}, Options{}, sidecars},
		{
			"a sidecar of another namespace",
			proxy{namespace: "billing"},
			Options{},
			strings.Replace(sidecars, "outbound|80||lone", "outbound|80||hidden.example.com EDS: 10.0.1.1\noutbound|80||lone", 1),
		},
		{
			"a gateway that passes connections on",
			proxy{role: router, namespace: "ingress", labels: registry.Labels{"app": "edge"}},
			Options{},
			`BlackHoleCluster STATIC: 
outbound_.80_._.Cart.example.com EDS: 10.0.0.1
outbound_.80_._.lone.example.com: none
outbound_.80_._.raw.example.com EDS: 
outbound_.80_.v1_.Cart.example.com EDS: 10.0.0.1
outbound_.81_._.Cart.example.com EDS: 10.0.0.1
outbound_.81_.v1_.Cart.example.com EDS: 10.0.0.1
` + strings.Replace(strings.SplitN(sidecars, "\n", 3)[2], "raw.example.com ORIGINAL_DST", "raw.example.com EDS", 1),
		},
		{
			"a gateway with clusters that it uses only",
			proxy{role: router, namespace: "ingress", labels: registry.Labels{"app": "plain"}},
			Options{FilterGatewayClusters: true},
			"BlackHoleCluster STATIC: \noutbound|80||dns.example.com envoy.clusters.dns: a.example.com b.example.com\n",
		},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			st := newState(newIndex(configs, newSettings(tc.options)), w)
			names := st.clusterNames(&tc.proxy)
			if diff := cmp.Diff(tc.want, describeClusters(st, &tc.proxy, names)); diff != "" {
				t.Errorf("clusters (-want +got):\n%s", diff)
			}
			assignments := st.assignmentNames(&tc.proxy)
			for _, name := range names {
				c := st.cluster(&tc.proxy, name)
				eds := c.GetEdsClusterConfig() != nil
				if has := st.assignment(&tc.proxy, name) != nil; has != eds || has != slices.Contains(assignments, name) {
					t.Errorf("%s: EDS %t, assignment %t", name, eds, has)
				}
			}
		})
	}
}

// TestNamesThatAreNoClusters: nothing is served under other names, above all
// nothing that the proxy must not see.
func TestNamesThatAreNoClusters(t *testing.T) {
	w, configs := clusterWorld(t)
	st := newState(newIndex(configs, newSettings(Options{FilterGatewayClusters: true})), w)
	for _, name := range []string{
		"", "outbound|80||hidden.example.com", "outbound|80||cart.example.com", "outbound|82||Cart.example.com", "outbound|80|v9|Cart.example.com",
		"outbound_.80_._.Cart.example.com", "inbound|80||", "Cart.example.com",
	} {
		p := &proxy{namespace: "shop"}
		if c, a := st.cluster(p, name), st.assignment(p, name); c != nil || a != nil {
			t.Errorf("sidecar: %q has %v, %v", name, c, a)
		}
	}
	edge := &proxy{role: router, namespace: "shop"}
	for _, name := range []string{"outbound|80||Cart.example.com", "outbound_.80_._.Cart.example.com", "PassthroughCluster"} {
		if c, a := st.cluster(edge, name), st.assignment(edge, name); c != nil || a != nil {
			t.Errorf("gateway: %q has %v, %v", name, c, a)
		}
	}
}

// TestGRPCClientsAreAnswered for every cluster that a route can name, because two
// of the three clients hold back all calls of a target until all its clusters are
// known; a DNS service is one name for them.
func TestGRPCClientsAreAnswered(t *testing.T) {
	w, configs := clusterWorld(t)
	st := newState(newIndex(configs, newSettings(Options{})), w)
	p := &proxy{role: grpcClient, namespace: "shop"}
	got := describeClusters(st, p, []string{
		"outbound|80||Cart.example.com", "outbound|80|v9|Cart.example.com", "outbound|82||Cart.example.com", "outbound|80||hidden.example.com",
		"outbound|80||nowhere.example.com", "outbound|80||dns.example.com", "outbound|80||lone.example.com", "outbound|80||raw.example.com",
		"BlackHoleCluster", "Cart.example.com",
	})
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
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("clusters (-want +got):\n%s", diff)
	}
	for _, name := range []string{"outbound|80|v9|Cart.example.com", "outbound|80||raw.example.com"} {
		if a := st.assignment(p, name); a.GetClusterName() != name || len(a.GetEndpoints()) != 0 {
			t.Errorf("assignment of %s: %v", name, a)
		}
	}
	if a := st.assignment(p, "outbound|80||dns.example.com"); a != nil {
		t.Errorf("assignment of a DNS service: %v", a)
	}
}

// TestSpellings: entries that spell a host in two ways are one service, whose
// clusters have the name that routes lead to.
func TestSpellings(t *testing.T) {
	one, two := testService("shop", "Cart.example.com", 80), testService("shop", "cart.EXAMPLE.com", 81)
	two.CreationTime = one.CreationTime.Add(1)
	w := newListWorld(one, two)
	w.place(one, "10.0.0.1")
	w.place(two, "10.0.0.2")
	st, p := newState(newIndex(configList{}, newSettings(Options{})), w), &proxy{namespace: "shop"}
	got := describeClusters(st, p, st.clusterNames(p)[2:])
	want := "outbound|80||Cart.example.com EDS: 10.0.0.1\noutbound|81||Cart.example.com EDS: 10.0.0.2\n"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("clusters (-want +got):\n%s", diff)
	}
}

// TestHashOf: the key of a consistent hash comes from the most specific level that
// has one.
func TestHashOf(t *testing.T) {
	w, configs := clusterWorld(t)
	header := func(name string) string {
		return `"loadBalancer":{"consistentHash":{"httpHeaderName":"` + name + `"}}`
	}
	configs.addRule(t, "shop/dns", `{"host":"dns.example.com","trafficPolicy":{`+header("rule")+`,"portLevelSettings":[{"port":{"number":81},`+header("port")+`}]},
		"subsets":[{"name":"plain"},{"name":"own","trafficPolicy":{`+header("subset")+`,"portLevelSettings":[{"port":{"number":82},`+header("both")+`}]}}]}`)
	st := newState(newIndex(configs, newSettings(Options{})), w)
	p := &proxy{namespace: "shop"}
	for _, tc := range []struct {
		port   uint32
		subset string
		want   string
	}{{80, "", "rule"}, {81, "", "port"}, {80, "plain", "rule"}, {81, "plain", "port"}, {81, "own", "subset"}, {82, "own", "both"}} {
		svc := st.scopeOf(p).service("dns.example.com")
		if got := st.hashOf(p, svc.host, svc, tc.port, tc.subset).GetHttpHeaderName(); got != tc.want {
			t.Errorf("%d, %q: %q, want %q", tc.port, tc.subset, got, tc.want)
		}
	}
	if got := st.hashOf(p, "nowhere.example.com", nil, 80, ""); got != nil {
		t.Errorf("of no service: %v", got)
	}
}
