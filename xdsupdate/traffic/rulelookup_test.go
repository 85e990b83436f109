// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"fmt"
	"strings"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"github.com/google/go-cmp/cmp"

	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
)

// limited is a rule that differs from others in its limit of connections, with a
// subset of the same name.
func limited(host string, n int, more string) string {
	return fmt.Sprintf(`{"host":%q,"trafficPolicy":{"connectionPool":{"tcp":{"maxConnections":%d}}},"subsets":[{"name":"s%d"}]%s}`, host, n, n, more)
}

// TestRuleOf: which rule holds, by which step, and what several come to, as in the
// recorded cases of lookups, merging and workload selectors.
func TestRuleOf(t *testing.T) {
	type asked struct {
		namespace, labels string
		want              string // limit, step and subsets
	}
	web := `,"workloadSelector":{"matchLabels":{"app":"web"}}`
	tests := []struct {
		name  string
		rules [][2]string // in order of age
		asked []asked
	}{
		{
			"lookup order",
			[][2]string{
				{"billing/client", limited(cart, 1, "")},
				{"shop/service", limited("cart", 2, "")},
				{"istio-system/root", limited(cart, 3, "")},
			},
			[]asked{
				{"shop", "", "2 by the client's namespace: s2"},
				{"billing", "", "1 by the client's namespace: s1"},
				{"zoo", "", "2 by the service's namespace: s2"},
				{"istio-system", "", "2 by the service's namespace: s2"},
			},
		},
		{
			"the root namespace last",
			[][2]string{{"istio-system/root", limited("*.svc.cluster.local", 3, "")}, {"zoo/elsewhere", limited(cart, 4, "")}},
			[]asked{
				{"shop", "", "3 by the root namespace: s3"},
				{"zoo", "", "4 by the client's namespace: s4"},
				{"istio-system", "", "3 by the root namespace: s3"},
			},
		},
		{
			"private in the root namespace",
			[][2]string{{"istio-system/private", limited("*.local", 1, `,"exportTo":["."]`)}, {"shop/cart", limited("cart", 2, "")}},
			[]asked{{"shop", "", "2 by the client's namespace: s2"}, {"istio-system", "", "1 by the client's namespace: s1"}},
		},
		{
			"a wildcard of the client before an exact host",
			[][2]string{{"billing/wild", limited("*.shop.svc.cluster.local", 1, "")}, {"shop/exact", limited("cart", 2, "")}},
			[]asked{{"billing", "", "1 by the client's namespace: s1"}, {"shop", "", "2 by the client's namespace: s2"}},
		},
		{
			"the most specific host",
			[][2]string{
				{"shop/star", limited("*", 1, "")}, {"shop/domain", limited("*.shop.svc.cluster.local", 2, "")}, {"shop/local", limited("*.local", 4, "")},
			},
			[]asked{{"shop", "", "2 by the client's namespace: s2"}, {"zoo", "", "2 by the service's namespace: s2"}},
		},
		{
			"exported elsewhere only",
			[][2]string{{"shop/a", limited("cart", 1, `,"exportTo":["billing"]`)}},
			[]asked{{"shop", "", "none"}, {"billing", "", "1 by the service's namespace: s1"}, {"zoo", "", "none"}},
		},
		{
			"a private rule hides none from others",
			[][2]string{{"shop/private", limited("cart", 1, `,"exportTo":["."]`)}, {"shop/domain", limited("*.shop.svc.cluster.local", 2, "")}},
			[]asked{{"shop", "", "1 by the client's namespace: s1"}, {"zoo", "", "2 by the service's namespace: s2"}},
		},
		{
			"apart from others of another visibility", // T82
			[][2]string{
				{"shop/web", limited("cart", 1, web)},
				{"shop/private", limited("cart", 2, `,"exportTo":["."]`)},
				{"shop/wider", limited("cart", 3, `,"exportTo":[".","billing"]`)},
				{"shop/private2", limited("cart", 4, `,"exportTo":["."]`)},
			},
			[]asked{
				{"shop", "app=web", "1 by the client's namespace: s1"},
				{"shop", "", "3 by the client's namespace: s3"},
				{"billing", "", "3 by the service's namespace: s3"},
			},
		},
		{
			"merged",
			[][2]string{
				{"shop/none", `{"host":"cart","subsets":[{"name":"s0"}]}`}, {"shop/one", limited("cart", 1, "")}, {"shop/two", limited("cart", 2, "")},
			},
			[]asked{{"shop", "", "1 by the client's namespace: s0 s1 s2"}},
		},
		{
			"three visibilities: the youngest",
			[][2]string{
				{"shop/a-all", limited("cart", 1, "")},
				{"shop/b-billing", limited("cart", 2, `,"exportTo":["billing"]`)},
				{"shop/c-private", limited("cart", 3, `,"exportTo":["."]`)},
			},
			[]asked{
				{"shop", "", "3 by the client's namespace: s3"},
				{"billing", "", "2 by the service's namespace: s2"},
				{"zoo", "", "1 by the service's namespace: s1"},
			},
		},
		{
			"no visibility differs from all",
			[][2]string{{"shop/none", limited("cart", 1, "")}, {"shop/all", limited("cart", 2, `,"exportTo":["*"]`)}},
			[]asked{{"shop", "", "2 by the client's namespace: s2"}, {"zoo", "", "2 by the service's namespace: s2"}},
		},
		{
			"private and exported in the root namespace",
			[][2]string{{"istio-system/private", limited(cart, 1, `,"exportTo":["."]`)}, {"istio-system/root", limited(cart, 2, "")}},
			[]asked{{"istio-system", "", "1 by the client's namespace: s1"}, {"shop", "", "2 by the root namespace: s2"}},
		},
		{
			"workload selectors",
			[][2]string{
				{"shop/general", limited("cart", 2, "")}, {"shop/selected", limited("cart", 1, web)}, {"shop/again", limited("cart", 3, web)},
			},
			[]asked{
				{"shop", "app=web", "1 by the client's namespace: s1 s3"},
				{"shop", "", "2 by the client's namespace: s2"},
				{"billing", "app=web", "2 by the service's namespace: s2"},
			},
		},
		{
			"a workload selector that does not fit ends the lookup",
			[][2]string{{"shop/selected", limited("cart", 1, web)}, {"istio-system/root", limited("*", 3, "")}},
			[]asked{{"shop", "", "none"}, {"billing", "", "3 by the root namespace: s3"}},
		},
		{
			"letter case", [][2]string{{"shop/cart", limited("CART", 1, "")}}, []asked{{"shop", "", "1 by the client's namespace: s1"}},
		},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			var rules []string
			for _, r := range tc.rules {
				rules = append(rules, "DestinationRule "+r[0]+" "+r[1])
			}
			s := stage(t, traffic.Options{}, objectsOf(t, rules...), populate(testService("shop", cart, 80)))
			for _, a := range tc.asked {
				got := s.ruleOf(in("sidecar", a.namespace, strings.Fields(a.labels)...))
				if diff := cmp.Diff(a.want, got); diff != "" {
					t.Errorf("%s with labels %q (-want +got):\n%s", a.namespace, a.labels, diff)
				}
			}
		})
	}
}

// ruleOf describes the rule that holds for cart: its limit, why it holds, and its subsets.
func (s *scene) ruleOf(n *core.Node) string {
	s.t.Helper()
	found := s.explain(n, traffic.Call{Host: cart, Port: 80, Path: "/"}).Destinations[0].FoundIn
	if found == "" {
		return "none"
	}
	clusters := s.ask(n, envoy.ClusterType)
	var subsets []string
	for _, name := range clusters.names {
		if _, subset, _, _ := envoy.ParseSubsetClusterName(name); subset != "" {
			subsets = append(subsets, subset)
		}
	}
	limit := clusters.resources["outbound|80||"+cart].(*clusterv3.Cluster).GetCircuitBreakers().GetThresholds()[0].GetMaxConnections().GetValue()
	return fmt.Sprintf("%d by %s: %s", limit, found, strings.Join(subsets, " "))
}

// TestHashOfThePort: the key of a hash is that of the port to which a destination leads, though it does
// not name the port.
func TestHashOfThePort(t *testing.T) {
	s := stage(t, traffic.Options{}, objectsOf(t,
		`VirtualService shop/cart {"hosts": ["cart"], "http": [{"route": [{"destination": {"host": "cart"}}]}]}`,
		`DestinationRule shop/cart {"host": "cart", "trafficPolicy": {"portLevelSettings": [{"port": {"number": 80}, "loadBalancer": {"consistentHash": {"httpHeaderName": "x"}}}]}}`,
	), populate(testService("shop", cart, 80)))
	for _, vh := range s.routes(in("sidecar", "shop"), "80").GetVirtualHosts() {
		if key := vh.GetRoutes()[0].GetRoute().GetHashPolicy(); vh.GetDomains()[0] != "*" && (len(key) != 1 || key[0].GetHeader().GetHeaderName() != "x") {
			t.Errorf("%v: the key is %v, want the header x", vh.GetDomains(), key)
		}
	}
}
