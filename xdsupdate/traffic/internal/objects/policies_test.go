// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"testing"

	security "istio.io/api/security/v1beta1"
	typev1beta1 "istio.io/api/type/v1beta1"

	"github.com/pilotkit/pilotkit/registry"
)

// TestConcerns: a policy with a target reference is for the Gateway of that name in its own
// namespace, also if its namespace is the root namespace.
func TestConcerns(t *testing.T) {
	edge := PolicyTarget{Targets: []*typev1beta1.PolicyTargetReference{{Group: "gateway.networking.k8s.io", Kind: "Gateway", Name: "edge"}}}
	router := func(namespace, gateway string) *Proxy {
		return &Proxy{Namespace: namespace, Labels: registry.Labels{gatewayLabel: gateway}}
	}
	for what, tt := range map[string]struct {
		target    PolicyTarget
		namespace string
		proxy     *Proxy
		want      bool
	}{
		"its Gateway":                     {edge, "shop", router("shop", "edge"), true},
		"another Gateway":                 {edge, "shop", router("shop", "inner"), false},
		"the name in another namespace":   {edge, "shop", router("billing", "edge"), false},
		"the name, of the root namespace": {edge, "root", router("billing", "edge"), false},
		"its Gateway in the root":         {edge, "root", router("root", "edge"), true},
		"no target, of the root":          {PolicyTarget{}, "root", router("billing", "edge"), true},
	} {
		if got := tt.target.Concerns(tt.namespace, tt.proxy, "root"); got != tt.want {
			t.Errorf("%s: %v, want %v", what, got, tt.want)
		}
	}
}

// TestModeOf: a mode that this version does not know is STRICT.
func TestModeOf(t *testing.T) {
	for mode, want := range map[tlsMode]tlsMode{unset: Permissive, Disable: Disable, Permissive: Permissive, Strict: Strict, 99: Strict} {
		if got := modeOf(&security.PeerAuthentication_MutualTLS{Mode: mode}, Permissive); got != want {
			t.Errorf("%v: %v, want %v", mode, got, want)
		}
	}
}
