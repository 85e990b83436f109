// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"testing"

	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// TestShares: views that differ in where their proxies are, or in labels that policies
// look at, do not share load assignments; those that differ in other things do.
func TestShares(t *testing.T) {
	w, configs := clusterWorld(t)
	x := &provided{state: newState(newIndex(configs, newSettings(Options{})), w), proxies: make(map[ads.View]*proxy)}
	const name = "outbound|80|v1|Cart.example.com"
	of := func(change func(v *ads.View, g *group)) any {
		v, g := ads.View{Namespace: "shop", Cluster: "c1"}, group{locality: "eu/a", network: "n1", labels: "app=web", addresses: "0.0.0.0"}
		change(&v, &g)
		v.Policy = g
		return x.shareOf(v, x.proxy(v), envoy.LoadAssignmentType, name)
	}
	same := of(func(*ads.View, *group) {})
	for what, tt := range map[string]struct {
		change func(v *ads.View, g *group)
		shared bool
	}{
		"cluster":   {func(v *ads.View, _ *group) { v.Cluster = "c2" }, false},
		"locality":  {func(_ *ads.View, g *group) { g.locality = "eu/b" }, false},
		"network":   {func(_ *ads.View, g *group) { g.network = "n2" }, false},
		"labels":    {func(_ *ads.View, g *group) { g.labels = "app=job" }, false},
		"addresses": {func(_ *ads.View, g *group) { g.addresses = "::" }, false},
		"namespace": {func(v *ads.View, _ *group) { v.Namespace = "billing" }, true},
		"targets":   {func(_ *ads.View, g *group) { g.targets = "80=8080" }, true},
	} {
		if got := of(tt.change) == same; got != tt.shared {
			t.Errorf("another %s: shared %t, want %t", what, got, tt.shared)
		}
	}
}
