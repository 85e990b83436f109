// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"testing"

	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"github.com/google/go-cmp/cmp"

	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
)

// TestServerNamesOfBackendTLSPolicies: servers have one of the names that a policy gives, or
// else the one that they are asked for, and not the identities of the service, as for other
// DestinationRules.
func TestServerNamesOfBackendTLSPolicies(t *testing.T) {
	configs := objectsOf(t, `DestinationRule shop/policy {"host": "catalog", "trafficPolicy": {"tls": {"mode": "SIMPLE", "sni": "all.test"},
		"portLevelSettings": [{"port": {"number": 90}, "tls": {"mode": "SIMPLE", "sni": "port.test"}}]}}`,
		`DestinationRule shop/names {"host": "Cart", "trafficPolicy": {"tls": {"mode": "SIMPLE", "sni": "cart.test", "subjectAltNames": ["alt.test", "spiffe://a/b"]}}}`,
		`DestinationRule billing/own {"host": "ledger", "trafficPolicy": {"tls": {"mode": "SIMPLE", "sni": "ledger.test"}}}`)
	for _, c := range configs[:2] {
		c.Annotations = map[string]string{"internal.istio.io/parents": "BackendTLSPolicy/shop.p"}
	}
	population := cartPopulation()
	for _, svc := range population.services {
		svc.ServiceAccounts = []string{"spiffe://mesh/sa"}
	}
	s := stage(t, traffic.Options{}, configs, population)
	got := map[string][]string{}
	for _, name := range []string{
		"outbound|80||catalog.shop.svc.cluster.local", "outbound|90||catalog.shop.svc.cluster.local", cartOutbound, "outbound|80||ledger.billing.svc.cluster.local",
	} {
		var tls tlsv3.UpstreamTlsContext
		if err := s.cluster(edge(), name).GetTransportSocket().GetTypedConfig().UnmarshalTo(&tls); err != nil {
			t.Fatal(name, err)
		}
		for _, m := range tls.GetCommonTlsContext().GetCombinedValidationContext().GetDefaultValidationContext().GetMatchTypedSubjectAltNames() {
			got[name] = append(got[name], m.GetSanType().String()+" "+m.GetMatcher().GetExact())
		}
	}
	want := map[string][]string{
		"outbound|80||catalog.shop.svc.cluster.local": {"DNS all.test"}, "outbound|90||catalog.shop.svc.cluster.local": {"DNS port.test"},
		cartOutbound: {"DNS alt.test", "URI spiffe://a/b"}, "outbound|80||ledger.billing.svc.cluster.local": {"URI spiffe://mesh/sa"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("names of servers (-want +got):\n%s", diff)
	}
}
