// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"slices"
	"testing"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
)

// TestShares: views share what does not depend on what they differ in. Routes and
// listeners do not depend on where the proxy is, but for its cluster; what clusters and
// assignments depend on is found out for each.
func TestShares(t *testing.T) {
	s := clusterScene(t, traffic.Options{}, `VirtualService shop/v {"hosts": ["lone.example.com"], "http": [{"match": [{"sourceLabels": {"app": "web"}}], "route": [{"destination": {"host": "raw.example.com"}}]}]}`)
	type key struct{ typeURL, name string }
	static := key{envoy.ClusterType, "outbound|80|v1|Cart.example.com"}
	assignment := key{envoy.LoadAssignmentType, static.name}
	routes := key{envoy.RouteType, "80"}
	client := func(kind string, more ...any) *core.Node {
		n := node(kind, append([]any{"CLUSTER_ID", "c1", "NETWORK", "n1", "NAMESPACE", "shop", "LABELS", map[string]any{"app": "web"}}, more...)...)
		n.Locality = &core.Locality{Region: "eu", Zone: "a"}
		return n
	}
	elsewhere := client("sidecar")
	elsewhere.Locality.Zone = "b"
	usual := s.view(client("sidecar"))
	for _, tt := range []struct {
		what   string
		client *core.Node
		shared []key
	}{
		{"name", client("sidecar"), []key{static, assignment, routes}},
		{"label that no policy looks at", client("sidecar", "LABELS", map[string]any{"app": "web", "x": "y"}), []key{static, assignment, routes}},
		{"cluster", client("sidecar", "CLUSTER_ID", "c2"), []key{static}},
		{"locality", elsewhere, []key{static, routes}},
		{"network", client("sidecar", "NETWORK", "n2"), []key{static, routes}},
		{"label", client("sidecar", "LABELS", map[string]any{"app": "job"}), []key{static}},
		{"family of addresses", at(client("sidecar"), "fd00::1"), nil},
		{"namespace", client("sidecar", "NAMESPACE", "billing"), []key{static, assignment}},
		{"role", client("router"), nil},
		{"client", client("grpc"), nil},
	} {
		view := s.view(tt.client)
		for _, k := range []key{static, assignment, routes} {
			one, other := s.provided.lookup(usual, k.typeURL, k.name), s.provided.lookup(view, k.typeURL, k.name)
			shared := one.Share == other.Share && one.Next == other.Next
			if want := slices.Contains(tt.shared, k); shared != want {
				t.Errorf("another %s: %v is shared: %t, want %t", tt.what, k, shared, want)
			}
		}
	}
	router, far := s.view(client("router")), client("router")
	far.Locality.Zone = "b"
	listener := func(v ads.View) any { return s.provided.lookup(v, envoy.ListenerType, "0.0.0.0_80").Share }
	if listener(router) != listener(s.view(far)) || listener(router) == listener(s.view(client("router", "NAMESPACE", "billing"))) {
		t.Error("listeners are shared by namespaces, or not by localities")
	}
}
