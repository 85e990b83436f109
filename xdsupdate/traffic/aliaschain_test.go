// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"github.com/google/go-cmp/cmp"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
)

func aliasFor(namespace string, host, target registry.Hostname) *registry.Service {
	s := testService(namespace, host, 80)
	s.Resolution = registry.Alias
	s.Attributes.Kubernetes = &registry.KubernetesAttributes{ExternalName: string(target)}
	return s
}

// TestAliasOfTwoNamespaces: an alias that stands for something else in the namespace of a
// proxy is no name of what it stands for elsewhere.
func TestAliasOfTwoNamespaces(t *testing.T) {
	s := stage(t, traffic.Options{}, nil, populate(
		testService("shop", "a.example.com", 80), testService("other", "b.example.com", 80),
		aliasFor("shop", "alias.example.com", "a.example.com"), aliasFor("other", "alias.example.com", "b.example.com"),
	))
	for namespace, want := range map[string]string{"shop": "a.example.com", "other": "b.example.com"} {
		for _, h := range s.routes(in("sidecar", namespace), "80").GetVirtualHosts() {
			has := slices.Contains(h.GetDomains(), "alias.example.com")
			if is := h.GetName() == want+":80"; has != is {
				t.Errorf("in %s, %s has the domains %v", namespace, h.GetName(), h.GetDomains())
			}
		}
	}
}

// TestLongChainsOfAliases: an alias of an alias stands for what that stands for, however
// many there are; a loop stands for nothing.
func TestLongChainsOfAliases(t *testing.T) {
	services := []*registry.Service{
		testService("shop", "end.com", 80), aliasFor("shop", "a0.com", "end.com"), aliasFor("shop", "loop.com", "pool.com"), aliasFor("shop", "pool.com", "loop.com"),
	}
	for i := 1; i < 20; i++ {
		services = append(services, aliasFor("shop", registry.Hostname(fmt.Sprintf("a%d.com", i)), registry.Hostname(fmt.Sprintf("a%d.com", i-1))))
	}
	routes := stage(t, traffic.Options{}, nil, populate(services...)).routes(in("sidecar", "shop"), "80")
	for host, want := range map[string]string{"a19.com": "end.com:80", "loop.com": "allow_any"} {
		if got := hostOf(routes, host).GetName(); got != want {
			t.Errorf("%s is served by %s, want %s", host, got, want)
		}
	}
}

// TestLabelsOfTopology: what a proxy says of its topology by labels is what counts, and
// what it does not say follows from its locality, network and cluster.
func TestLabelsOfTopology(t *testing.T) {
	const region, zone, subzone = "topology.kubernetes.io/region", "topology.kubernetes.io/zone", "topology.istio.io/subzone"
	const network, cluster = "topology.istio.io/network", "topology.istio.io/cluster"
	var rules []string
	for _, label := range [][2]string{{region, "eu"}, {zone, "a"}, {zone, "b"}, {subzone, "1"}, {network, "net"}, {network, "mine"}, {cluster, "c1"}} {
		rules = append(rules, fmt.Sprintf(`{"name": "%s=%s", "match": [{"sourceLabels": {%[1]q: %[2]q}, "uri": {"exact": "/%[2]s"}}], "route": [{"destination": {"host": "catalog"}}]}`, label[0], label[1]))
	}
	s := stage(t, traffic.Options{}, objectsOf(t, `VirtualService shop/v {"hosts": ["catalog"], "http": [`+strings.Join(rules, ", ")+"]}"), cartPopulation())
	locality := &core.Locality{Region: "eu", Zone: "a", SubZone: "1"}
	for name, tc := range map[string]struct {
		node *core.Node
		want []string
	}{
		"labels of its own": {
			node("sidecar", "NETWORK", "net", "CLUSTER_ID", "c1", "LABELS", map[string]any{network: "mine", zone: "b"}), []string{zone + "=b", network + "=mine", cluster + "=c1"},
		},
		"no labels": {node("sidecar", "NETWORK", "net"), []string{region + "=eu", zone + "=a", subzone + "=1", network + "=net"}},
	} {
		tc.node.Locality = locality
		var got []string
		for _, r := range hostOf(s.routes(tc.node, "80"), "catalog").GetRoutes() {
			got = append(got, r.GetName())
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
