// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"slices"
	"strings"
	"testing"

	meshconfig "istio.io/api/mesh/v1alpha1"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
)

// found reports whether a phrase is in what policies do not do.
func (s *scene) found(phrase string) bool {
	return slices.ContainsFunc(s.policies.Ineffective(), func(i traffic.Ineffective) bool { return strings.Contains(i.String(), phrase) })
}

// TestUnknownHosts: what becomes of requests to hosts that nobody knows, and that what
// is not done as the mesh says is reported.
func TestUnknownHosts(t *testing.T) {
	type policy = meshconfig.MeshConfig_OutboundTrafficPolicy
	for _, tc := range []struct {
		name    string
		policy  *policy
		allowed bool
		finding string
	}{
		{"nothing said", nil, true, ""},
		{"allowed", &policy{Mode: meshconfig.MeshConfig_OutboundTrafficPolicy_ALLOW_ANY}, true, ""},
		{"registry only", &policy{Mode: meshconfig.MeshConfig_OutboundTrafficPolicy_REGISTRY_ONLY}, false, ""},
		{
			"looked up", &policy{Mode: meshconfig.MeshConfig_OutboundTrafficPolicy_ALLOW_ANY_DYNAMIC_DNS}, true,
			"MeshConfig istio-system/mesh: outboundTrafficPolicy.mode: hosts are not looked up",
		},
		{
			"looked up, with TLS", &policy{
				Mode: meshconfig.MeshConfig_OutboundTrafficPolicy_ALLOW_ANY_DYNAMIC_DNS,
				Tls:  &networking.ClientTLSSettings{Mode: networking.ClientTLSSettings_SIMPLE},
			}, false, "MeshConfig istio-system/mesh: outboundTrafficPolicy.tls: ",
		},
		{"unknown", &policy{Mode: 77}, false, "MeshConfig istio-system/mesh: outboundTrafficPolicy.mode: 77 is not known"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newScene(t, traffic.Options{Mesh: &meshconfig.MeshConfig{OutboundTrafficPolicy: tc.policy}})
			s.service(&registry.Service{
				Hostname: "cart.shop.svc.cluster.local", Ports: []*registry.Port{{Name: "http", Number: 80, Protocol: registry.ProtocolHTTP}},
			})
			want := ""
			if tc.allowed {
				want = "PassthroughCluster"
			}
			if got := clusterOf(s.routes(node("sidecar"), "80"), "unknown.example.com"); got != want {
				t.Errorf("requests to unknown hosts go to %q, want %q", got, want)
			}
			if tc.finding != "" && !s.found(tc.finding) || tc.finding == "" && s.found("MeshConfig") {
				t.Errorf("reported: %q", s.policies.Ineffective())
			}
		})
	}
}
