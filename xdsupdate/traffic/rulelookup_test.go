// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/google/go-cmp/cmp"

	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/registry"
)

// addRule adds a DestinationRule in JSON.
func (l *configList) addRule(tb testing.TB, key, spec string) {
	tb.Helper()
	rule := &networking.DestinationRule{}
	if err := protojson.Unmarshal([]byte(spec), rule); err != nil {
		tb.Fatalf("%s: %v", key, err)
	}
	l.add(istio.DestinationRule, key, rule)
}

// limited is a rule that differs from others in its limit of connections, with a
// subset of the same name.
func limited(host string, n int, more string) string {
	return fmt.Sprintf(`{"host":%q,"trafficPolicy":{"connectionPool":{"tcp":{"maxConnections":%d}}},"subsets":[{"name":"s%d"}]%s}`, host, n, n, more)
}

const cartHost = "cart.shop.svc.cluster.local"

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
				{"billing/client", limited(cartHost, 1, "")},
				{"shop/service", limited("cart", 2, "")},
				{"istio-system/root", limited(cartHost, 3, "")},
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
			[][2]string{{"istio-system/root", limited("*.svc.cluster.local", 3, "")}, {"zoo/elsewhere", limited(cartHost, 4, "")}},
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
			var configs configList
			for _, r := range tc.rules {
				configs.addRule(t, r[0], r[1])
			}
			x := newIndex(configs, newSettings(Options{}))
			for _, a := range tc.asked {
				p := &proxy{namespace: a.namespace}
				if key, value, ok := strings.Cut(a.labels, "="); ok {
					p.labels = registry.Labels{key: value}
				}
				got := "none"
				if m, step := x.ruleOf(p, cartHost, "shop"); m != nil {
					got = fmt.Sprintf("%d by %v: %s", m.policy.GetConnectionPool().GetTcp().GetMaxConnections(), step, strings.Join(m.subsetNames(), " "))
				}
				if diff := cmp.Diff(a.want, got); diff != "" {
					t.Errorf("%s with labels %q (-want +got):\n%s", a.namespace, a.labels, diff)
				}
			}
		})
	}
}

// TestRuleIndex: an index that was changed step by step finds what a fresh one
// does, and the former state stays as it was.
func TestRuleIndex(t *testing.T) {
	s := newSettings(Options{})
	hosts := []string{"cart", "*", "*.shop.svc.cluster.local", "*.local"}
	var configs configList
	for i := range 12 {
		configs.addRule(t, fmt.Sprintf("shop/r%02d", i), limited(hosts[i%len(hosts)], i, ""))
	}
	var x ruleIndex
	rules := make([]*destinationRule, len(configs))
	for i, c := range configs {
		rules[i] = newDestinationRule(c, s)
		x = x.with(nil, rules[i])
	}
	full := x
	found := func(x ruleIndex) string {
		var out []string
		for _, m := range x.find("shop", cartHost, func(*destinationRule) bool { return true }) {
			out = append(out, m.subsetNames()...)
		}
		return strings.Join(out, " ")
	}
	for _, step := range []struct {
		remove []int
		want   string
	}{
		{nil, "s0 s4 s8"},
		{[]int{4}, "s0 s8"},
		{[]int{0, 8}, "s2 s6 s10"},
		{[]int{2, 6, 10}, "s3 s7 s11"},
		{[]int{3, 7, 11}, "s1 s5 s9"},
		{[]int{1, 5, 9}, ""},
	} {
		for _, i := range step.remove {
			x = x.with(rules[i], nil)
		}
		if got := found(x); got != step.want {
			t.Errorf("without %v: %q, want %q", step.remove, got, step.want)
		}
	}
	if n, _ := x.wildcards.Get("shop"); n != 0 || x.hosts.Len() != 0 {
		t.Errorf("%d wildcards and %d hosts are left", n, x.hosts.Len())
	}
	if got := found(full); got != "s0 s4 s8" {
		t.Errorf("the former index has changed: %q", got)
	}
}
