// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
)

// TestEffectsOfPeers: what PeerAuthentications do, and what of them does nothing (S10, S20, S21).
func TestEffectsOfPeers(t *testing.T) {
	t.Parallel()
	objects := objectsOf(t,
		`PeerAuthentication istio-system/mesh {"mtls": {"mode": "STRICT"}}`,
		`PeerAuthentication istio-system/some {"selector": {"matchLabels": {"app": "a"}}, "mtls": {"mode": "STRICT"}}`,
		`PeerAuthentication shop/old {"mtls": {"mode": "PERMISSIVE"}}`,
		`PeerAuthentication shop/young {"mtls": {"mode": "STRICT"}}`,
		`PeerAuthentication shop/web {"selector": {"matchLabels": {"app": "nobody"}}, "mtls": {"mode": "DISABLE"}}`,
		`PeerAuthentication shop/ports {"selector": {"matchLabels": {"app": "cart"}}, "portLevelMtls": {"80": {"mode": "STRICT"}, "8080": {"mode": "DISABLE"}}}`,
		`PeerAuthentication shop/web2 {"selector": {"matchLabels": {"app": "nobody", "version": "v1"}}, "mtls": {"mode": "STRICT"}}`,
	)
	cart := testService("shop", "cart.shop.svc.cluster.local", 80)
	services := populate(cart)
	services.place(cart, "10.0.0.1 app=cart port=8080")
	s := stage(t, traffic.Options{}, objects, services)
	for name, want := range map[string][]string{
		"shop/ports": {
			"gRPC servers of namespace shop with the labels app=cart: the connections that they take: UNSET",
			"sidecars and gateways: connections to workloads of namespace shop with the labels app=cart: UNSET",
			"spec.portLevelMtls[80]: no service of the namespace leads to this port of the workloads, whose ports count here, and not those of services",
		},
		"istio-system/mesh": {
			"gRPC servers of all namespaces, where their own do not say it: the connections that they take: STRICT",
			"sidecars and gateways: connections to workloads of all namespaces, where their own do not say it: STRICT",
		},
		"istio-system/some": {"spec.selector: policies of the root namespace are for the mesh: one with a selector is for no workload"},
		"shop/old": {
			"gRPC servers of namespace shop: the connections that they take: PERMISSIVE",
			"sidecars and gateways: connections to workloads of namespace shop: PERMISSIVE",
			"spec.mtls.mode: gRPC servers cannot take both: they take plain text, or, with the label security.istio.io/tlsMode: istio on the workload, mutual TLS",
		},
		"shop/young": {"PeerAuthentication shop/old is older, and counts alone"},
		"shop/web": {
			"gRPC servers of namespace shop with the labels app=nobody: the connections that they take: DISABLE",
			"sidecars and gateways: connections to workloads of namespace shop with the labels app=nobody: DISABLE",
			"spec.selector: no service of the namespace has a workload with these labels",
		},
		"shop/web2": {"PeerAuthentication shop/web is older, and selects all workloads that this one does"},
	} {
		namespace, object, _ := strings.Cut(name, "/")
		does, not := s.policies.Effects(configstore.ConfigKey{Kind: istio.PeerAuthentication, Namespace: namespace, Name: object})
		var got []string
		for _, e := range does {
			got = append(got, e.String())
		}
		for _, e := range not {
			got = append(got, strings.TrimPrefix(e.String(), "PeerAuthentication "+name+": "))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("effects of %s (-want +got):\n%s", name, diff)
		}
	}
}

// TestTokensOfServers: gRPC servers verify no tokens (S9); routers of Gateways are none.
func TestTokensOfServers(t *testing.T) {
	t.Parallel()
	const (
		tokens  = `RequestAuthentication %s/tokens {"selector": {"matchLabels": {"app": "%s"}}, "jwtRules": [{"issuer": "one", "jwks": "{\"keys\": [{\"kty\": \"EC\", \"x\": \"MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4\", \"y\": \"4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM\"}]}"}]}`
		policy  = `AuthorizationPolicy %s/a {"selector": {"matchLabels": {"app": "%s"}}, "rules": [{"from": [{"source": {"requestPrincipals": ["*"]}}]}]}`
		gateway = `Gateway infra/edge {"selector": {"app": "edge"}, "servers": [{"hosts": ["*"], "port": {"number": 80, "name": "http", "protocol": "HTTP"}}]}`
		servers = "gRPC servers verify no tokens: "
	)
	for name, tc := range map[string]struct {
		app  string
		want []string
	}{
		"a router": {"edge", nil},
		"a workload": {"cart", []string{
			"AuthorizationPolicy shop/a: spec.rules[0].from[0].source: " + servers + "no call to one has what it is about",
			"RequestAuthentication shop/tokens: only gateways enforce it, and no Gateway is for routers that it selects",
			"RequestAuthentication shop/tokens: spec.jwtRules: " + servers + "those among the workloads take calls with any token, and without one",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			svc := testService("shop", cart, 80)
			svc.Ports[0].Protocol = registry.ProtocolGRPC
			services := populate(svc)
			services.place(svc, "10.0.0.1 app="+tc.app)
			s := stage(t, traffic.Options{}, objectsOf(t, gateway, fmt.Sprintf(tokens, "shop", tc.app), fmt.Sprintf(policy, "shop", tc.app)), services)
			var got []string
			for _, found := range s.ineffective() {
				if !strings.HasPrefix(found, "Gateway") {
					got = append(got, found)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("found (-want +got):\n%s", diff)
			}
		})
	}
}
