// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"strings"
	"testing"

	meshconfig "istio.io/api/mesh/v1alpha1"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
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
		{"the mesh allows", meshconfig.MeshConfig_OutboundTrafficPolicy_ALLOW_ANY, nil, "PassthroughCluster", false},
		{"the mesh blocks", meshconfig.MeshConfig_OutboundTrafficPolicy_REGISTRY_ONLY, nil, "", false},
		{
			"the Sidecar allows", meshconfig.MeshConfig_OutboundTrafficPolicy_REGISTRY_ONLY,
			&policy{Mode: networking.OutboundTrafficPolicy_ALLOW_ANY}, "PassthroughCluster", false,
		},
		{
			"the Sidecar blocks", meshconfig.MeshConfig_OutboundTrafficPolicy_ALLOW_ANY,
			&policy{Mode: networking.OutboundTrafficPolicy_REGISTRY_ONLY}, "", false,
		},
		{
			"a proxy", meshconfig.MeshConfig_OutboundTrafficPolicy_REGISTRY_ONLY,
			&policy{Mode: networking.OutboundTrafficPolicy_ALLOW_ANY, EgressProxy: proxied}, cartOutbound, false,
		},
		{"not known", meshconfig.MeshConfig_OutboundTrafficPolicy_ALLOW_ANY, &policy{Mode: 77}, "", true},
		{"not known, with a proxy", meshconfig.MeshConfig_OutboundTrafficPolicy_ALLOW_ANY, &policy{Mode: -1, EgressProxy: proxied}, "", true},
	} {
		var configs configList
		configs.add(istio.Sidecar, "shop/s", &networking.Sidecar{
			OutboundTrafficPolicy: tc.policy, Egress: []*networking.IstioEgressListener{{Hosts: []string{"*/*"}}},
		})
		mesh := &meshconfig.MeshConfig{OutboundTrafficPolicy: &meshconfig.MeshConfig_OutboundTrafficPolicy{Mode: tc.mesh}}
		s := stage(t, traffic.Options{Mesh: mesh}, configs, cartPopulation())
		rc := s.routes(in("sidecar", "shop"), "80")
		route := rc.GetVirtualHosts()[len(rc.GetVirtualHosts())-1].GetRoutes()[0]
		if got := route.GetRoute().GetCluster(); got != tc.want || (got == "") != (route.GetDirectResponse().GetStatus() == 502) {
			t.Errorf("%s: requests to unknown hosts go to %q, want %q", tc.name, got, tc.want)
		}
		reported := strings.Contains(s.reason("s", "spec.outboundTrafficPolicy.mode"), "is not known")
		if reported != tc.reported {
			t.Errorf("%s: reported: %t", tc.name, reported)
		}
	}
}
