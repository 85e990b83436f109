// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"slices"
	"testing"

	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// TestShares: views share what does not depend on what they differ in. Routes and
// listeners do not depend on where the proxy is, but for its cluster; what clusters and
// assignments depend on is found out for each.
func TestShares(t *testing.T) {
	w, configs := clusterWorld(t)
	x := &provided{state: newState(newIndex(configs, newSettings(Options{})), w), proxies: make(map[ads.View]*proxy)}
	type key struct{ typeURL, name string }
	of := func(k key, change func(v *ads.View, g *group)) any {
		v, g := ads.View{Namespace: "shop", Cluster: "c1"}, group{locality: "eu/a", network: "n1", labels: "app=web", addresses: "0.0.0.0"}
		change(&v, &g)
		v.Policy = g
		return x.shareOf(v, x.proxy(v), k.typeURL, k.name)
	}
	static := key{envoy.ClusterType, "outbound|80|v1|Cart.example.com"}
	assignment := key{envoy.LoadAssignmentType, static.name}
	routes, listener := key{envoy.RouteType, "80"}, key{envoy.ListenerType, "0.0.0.0_80"}
	for _, tt := range []struct {
		what   string
		change func(v *ads.View, g *group)
		shared []key
	}{
		{"cluster", func(v *ads.View, _ *group) { v.Cluster = "c2" }, []key{static}},
		{"locality", func(_ *ads.View, g *group) { g.locality = "eu/b" }, []key{static, routes, listener}},
		{"network", func(_ *ads.View, g *group) { g.network = "n2" }, []key{static, routes, listener}},
		{"labels", func(_ *ads.View, g *group) { g.labels = "app=job" }, []key{static}},
		{"addresses", func(_ *ads.View, g *group) { g.addresses = "::" }, nil},
		{"namespace", func(v *ads.View, _ *group) { v.Namespace = "billing" }, []key{static, assignment}},
		{"targets", func(_ *ads.View, g *group) { g.targets = "80=8080" }, []key{static, assignment}},
		{"role", func(_ *ads.View, g *group) { g.router = true }, nil},
		{"client", func(v *ads.View, _ *group) { v.Client = envoy.ForGRPC }, nil},
	} {
		for _, k := range []key{static, assignment, routes, listener} {
			shared := of(k, tt.change) == of(k, func(*ads.View, *group) {})
			if want := slices.Contains(tt.shared, k); shared != want {
				t.Errorf("another %s: %v is shared: %t, want %t", tt.what, k, shared, want)
			}
		}
	}
}
