// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"slices"
	"strings"
	"testing"

	meshconfig "istio.io/api/mesh/v1alpha1"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore/istio"
)

// TestOutboundPolicyOfSidecar: the policy of a Sidecar replaces that of the mesh for
// requests to unknown hosts. A mode that is not known is no permission, and reported.
func TestOutboundPolicyOfSidecar(t *testing.T) {
	type policy = networking.OutboundTrafficPolicy
	proxied := &networking.Destination{Host: "cart", Port: &networking.PortSelector{Number: 8080}}
	for _, tc := range []struct {
		name     string
		mesh     meshconfig.MeshConfig_OutboundTrafficPolicy_Mode
		policy   *policy
		want     string // the cluster; empty: blocked
		reported bool
	}{
		{"the mesh allows", meshconfig.MeshConfig_OutboundTrafficPolicy_ALLOW_ANY, nil, passthroughCluster, false},
		{"the mesh blocks", meshconfig.MeshConfig_OutboundTrafficPolicy_REGISTRY_ONLY, nil, "", false},
		{
			"the Sidecar allows", meshconfig.MeshConfig_OutboundTrafficPolicy_REGISTRY_ONLY,
			&policy{Mode: networking.OutboundTrafficPolicy_ALLOW_ANY}, passthroughCluster, false,
		},
		{
			"the Sidecar blocks", meshconfig.MeshConfig_OutboundTrafficPolicy_ALLOW_ANY,
			&policy{Mode: networking.OutboundTrafficPolicy_REGISTRY_ONLY}, "", false,
		},
		{
			"a proxy", meshconfig.MeshConfig_OutboundTrafficPolicy_REGISTRY_ONLY,
			&policy{Mode: networking.OutboundTrafficPolicy_ALLOW_ANY, EgressProxy: proxied}, cartCluster, false,
		},
		{"not known", meshconfig.MeshConfig_OutboundTrafficPolicy_ALLOW_ANY, &policy{Mode: 77}, "", true},
		{"not known, with a proxy", meshconfig.MeshConfig_OutboundTrafficPolicy_ALLOW_ANY, &policy{Mode: -1, EgressProxy: proxied}, "", true},
	} {
		var configs configList
		configs.add(istio.Sidecar, "shop/s", &networking.Sidecar{
			OutboundTrafficPolicy: tc.policy, Egress: []*networking.IstioEgressListener{{Hosts: []string{"*/*"}}},
		})
		mesh := &meshconfig.MeshConfig{OutboundTrafficPolicy: &meshconfig.MeshConfig_OutboundTrafficPolicy{Mode: tc.mesh}}
		st := newState(newIndex(configs, newSettings(Options{Mesh: mesh})), cartWorld())
		rc := st.routesSent(&proxy{namespace: "shop"}, "80")
		route := rc.GetVirtualHosts()[len(rc.GetVirtualHosts())-1].GetRoutes()[0]
		if got := route.GetRoute().GetCluster(); got != tc.want || (got == "") != (route.GetDirectResponse().GetStatus() == 502) {
			t.Errorf("%s: requests to unknown hosts go to %q, want %q", tc.name, got, tc.want)
		}
		reported := slices.ContainsFunc(st.ineffective(), func(e Ineffective) bool {
			return e.Kind == istio.Sidecar && e.Field == "spec.outboundTrafficPolicy.mode" && strings.Contains(e.Reason, "is not known")
		})
		if reported != tc.reported {
			t.Errorf("%s: reported: %t", tc.name, reported)
		}
	}
}
