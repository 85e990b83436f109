// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"github.com/google/go-cmp/cmp"

	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
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

// TestCertificateForBackends: the proxies of a Gateway of Kubernetes show its certificate to
// backends with a BackendTLSPolicy, and to nobody else, from when it has one.
func TestCertificateForBackends(t *testing.T) {
	gateway := func(name, certificate string) configList {
		out := objectsOf(t, "Gateway ingress/"+name+` {"servers": [{"hosts": ["*"], "port": {"number": 80, "name": "http", "protocol": "HTTP"}}]}`)
		out[0].Labels = map[string]string{"gateway.networking.k8s.io/gateway-name": name}
		out[0].Annotations = map[string]string{"internal.istio.io/gateway-semantics": "gateway", istio.AnnotationBackendCertificate: certificate}
		return out
	}
	configs := objectsOf(t, `DestinationRule shop/policy {"host": "Cart", "trafficPolicy": {"tls": {"mode": "SIMPLE", "sni": "cart.test"}}}`,
		`DestinationRule billing/own {"host": "ledger", "trafficPolicy": {"tls": {"mode": "SIMPLE", "sni": "ledger.test"}}}`)
	configs[0].Annotations = map[string]string{"internal.istio.io/parents": "BackendTLSPolicy/shop.p"}
	const first, second = "kubernetes-gateway://ingress/first", "kubernetes-gateway://ingress/second"
	s := stage(t, traffic.Options{}, append(append(configs, gateway("one", first)...), gateway("two", "")...), cartPopulation())
	const own = "outbound|80||ledger.billing.svc.cluster.local"
	clients := map[string]*xdstest.Client{}
	for _, name := range []string{"one", "two"} {
		clients[name] = s.connect(in("router", "ingress", "gateway.networking.k8s.io/gateway-name="+name))
		s.must(clients[name].Subscribe(envoy.ClusterType))
		s.await(clients[name], func(st xdstest.State) bool { return st.Has(envoy.ClusterType, cartOutbound, own) })
	}
	for _, want := range []map[string]string{{"one": first, "two": ""}, {"one": second, "two": first}, {"one": "", "two": first}} {
		s.change(append(gateway("one", want["one"]), gateway("two", want["two"])...))
		for name, client := range clients {
			for cluster, want := range map[string]string{cartOutbound: want[name], own: ""} {
				if got := certificateOf(t, client.State(), cluster); got != want {
					t.Errorf("proxies of %s show %q to %s, want %q", name, got, cluster, want)
				}
			}
		}
	}
}

// certificateOf is the name of the certificate that a client shows to the servers of a cluster.
func certificateOf(t *testing.T, st xdstest.State, cluster string) string {
	t.Helper()
	m, err := st.Resources(envoy.ClusterType)[cluster].Message()
	if err != nil {
		t.Fatal(err)
	}
	var tls tlsv3.UpstreamTlsContext
	if err := m.(*clusterv3.Cluster).GetTransportSocket().GetTypedConfig().UnmarshalTo(&tls); err != nil {
		t.Fatal(err)
	}
	var out string
	for _, config := range tls.GetCommonTlsContext().GetTlsCertificateSdsSecretConfigs() {
		out += config.GetName()
	}
	return out
}

// TestBackendTLSPoliciesOfSidecars: a sidecar verifies servers by the authorities of a policy, as gateways do, and a
// policy without an authority that can be used fails its connections too, instead of sending plain text.
func TestBackendTLSPoliciesOfSidecars(t *testing.T) {
	for _, credential := range []string{"configmap://shop/ca", "kubernetes-gateway://shop/ca", "invalid://"} {
		configs := objectsOf(t, `DestinationRule shop/policy {"host": "Cart", "trafficPolicy": {"tls": {"mode": "SIMPLE", "sni": "cart.test", "credentialName": "`+credential+`"}}}`)
		configs[0].Annotations = map[string]string{"internal.istio.io/parents": "BackendTLSPolicy/shop.p"}
		s := stage(t, traffic.Options{}, configs, cartPopulation())
		for _, client := range []*core.Node{edge(), in("sidecar", "shop")} {
			var tls tlsv3.UpstreamTlsContext
			if err := s.cluster(client, cartOutbound).GetTransportSocket().GetTypedConfig().UnmarshalTo(&tls); err != nil {
				t.Fatal(client.GetId(), credential, err)
			}
			if got := tls.GetCommonTlsContext().GetCombinedValidationContext().GetValidationContextSdsSecretConfig().GetName(); got != credential+"-cacert" {
				t.Errorf("%s, %s: authorities %q", client.GetId(), credential, got)
			}
		}
	}
}
