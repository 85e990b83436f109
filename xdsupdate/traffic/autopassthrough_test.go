// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/internal/envoycheck"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
)

// TestWildcardServiceBehindAutoPassthrough: a service whose host is a wildcard has no
// filter chain, for which Envoy would refuse those of all others, nor has a subset with a star.
func TestWildcardServiceBehindAutoPassthrough(t *testing.T) {
	cart, wild := testService("shop", "cart.example.com", 80), testService("shop", "*.wild.example.com", 80)
	w := populate(cart, wild)
	w.place(cart, "10.0.0.1 tls=istio")
	w.place(wild, "10.0.0.2 tls=istio")
	s := stage(t, traffic.Options{}, objectsOf(t,
		`Gateway ingress/edge {"selector": {"app": "edge"}, "servers": [{"port": {"number": 15443, "name": "tls", "protocol": "TLS"}, "hosts": ["*"], "tls": {"mode": "AUTO_PASSTHROUGH"}}]}`,
		`DestinationRule shop/cart {"host": "cart.example.com", "subsets": [{"name": "*.good.test"}, {"name": "*"}]}`,
	), w)
	l := s.listener(edge(), "0.0.0.0_15443")
	if err := envoycheck.Envoy(l); err != nil {
		t.Error(err)
	}
	var names []string
	for _, c := range l.GetFilterChains() {
		names = append(names, c.GetFilterChainMatch().GetServerNames()...)
	}
	slices.Sort(names)
	if diff := cmp.Diff([]string{"outbound_.80_._.cart.example.com"}, names); diff != "" {
		t.Errorf("server names (-want +got):\n%s", diff)
	}
}

// TestPoliciesBehindAutoPassthrough: the workloads that an AUTO_PASSTHROUGH server leads to check
// policies. Its own filters would know no client, so that a policy for the mesh would cut off
// other networks.
func TestPoliciesBehindAutoPassthrough(t *testing.T) {
	cart := testService("shop", "cart.example.com", 80)
	w := populate(cart)
	w.place(cart, "10.0.0.1 tls=istio")
	s := stage(t, traffic.Options{}, objectsOf(t,
		`Gateway ingress/edge {"selector": {"app": "edge"}, "servers": [
			{"port": {"number": 15443, "name": "tls", "protocol": "TLS"}, "hosts": ["*"], "tls": {"mode": "AUTO_PASSTHROUGH"}},
			{"port": {"number": 8443, "name": "own", "protocol": "TLS"}, "hosts": ["*"], "tls": {"mode": "PASSTHROUGH"}}]}`,
		`VirtualService shop/cart {"hosts": ["cart.example.com"], "gateways": ["ingress/edge"], "tls": [
			{"match": [{"sniHosts": ["cart.example.com"]}], "route": [{"destination": {"host": "cart.example.com"}}]}]}`,
		`AuthorizationPolicy istio-system/nobody {}`,
		`AuthorizationPolicy istio-system/unknown {"action": "DENY", "rules": [{"from": [{"source": {"notPrincipals": ["*"]}}]}]}`,
	), w)
	for name, want := range map[string]int{"0.0.0.0_15443": 1, "0.0.0.0_8443": 3} {
		for _, c := range s.listener(edge(), name).GetFilterChains() {
			if got := len(c.GetFilters()); got != want {
				t.Errorf("%s: %d filters, want %d: %v", name, got, want, c.GetFilters())
			}
		}
	}
}

// TestNamespaceBehindAutoPassthrough: a host with a namespace covers the services of this namespace.
func TestNamespaceBehindAutoPassthrough(t *testing.T) {
	s := stage(t, traffic.Options{}, objectsOf(t,
		`Gateway ingress/edge {"selector": {"app": "edge"}, "servers": [{"port": {"number": 15443, "name": "tls", "protocol": "TLS"}, "hosts": ["shop/*"], "tls": {"mode": "AUTO_PASSTHROUGH"}}]}`,
	), populate(testService("shop", "cart.example.com", 80), testService("billing", "ledger.example.com", 80)))
	chains := s.listener(edge(), "0.0.0.0_15443").GetFilterChains()
	if len(chains) != 1 || chains[0].GetFilterChainMatch().GetServerNames()[0] != "outbound_.80_._.cart.example.com" {
		t.Errorf("filter chains %v, want one for cart", chains)
	}
}

// TestPathsBehindAutoPassthrough: an AUTO_PASSTHROUGH server, which checks no policies, is no TCP server
// that a rule about paths could deny too much of.
func TestPathsBehindAutoPassthrough(t *testing.T) {
	s := stage(t, traffic.Options{}, objectsOf(t,
		`Gateway ingress/edge {"selector": {"app": "edge"}, "servers": [{"port": {"number": 15443, "name": "tls", "protocol": "TLS"}, "hosts": ["*"], "tls": {"mode": "AUTO_PASSTHROUGH"}}]}`,
		`AuthorizationPolicy ingress/paths {"action": "DENY", "selector": {"matchLabels": {"app": "edge"}}, "rules": [{"to": [{"operation": {"paths": ["/a"]}}]}]}`,
	), populate())
	_, found := s.policies.Effects(configstore.ConfigKey{Kind: istio.AuthorizationPolicy, Namespace: "ingress", Name: "paths"})
	if len(found) != 1 || !strings.Contains(found[0].Reason, "AUTO_PASSTHROUGH") {
		t.Errorf("without effect: %v", found)
	}
}
