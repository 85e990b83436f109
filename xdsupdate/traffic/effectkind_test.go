// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protojson"
	meshconfig "istio.io/api/mesh/v1alpha1"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
)

// TestKindsWithoutEffect: each object of a kind that nothing acts on is found, and docs/kinds.md lists the same kinds.
func TestKindsWithoutEffect(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/kinds.md")
	if err != nil {
		t.Fatal(err)
	}
	var row string
	for line := range strings.Lines(string(page)) {
		if strings.Contains(line, "| none, but for providers of your own |") {
			row = line
		}
	}
	var objects configList
	for _, schema := range istio.Schemas().All() {
		kind := schema.GroupVersionKind
		if none := traffic.WithoutEffect(kind) != ""; none != strings.Contains(row, kind.Kind) {
			t.Errorf("%s is without effect: %t; docs/kinds.md says %q", kind.Kind, none, row)
		}
		objects = append(objects, &configstore.Config{Meta: configstore.Meta{GroupVersionKind: kind, Namespace: "shop", Name: "one"}, Spec: schema.NewSpec()})
	}
	s := stage(t, traffic.Options{}, objects, populate())
	all := make(map[configstore.GroupVersionKind]string)
	for _, e := range s.policies.Ineffective() {
		if e.Field == "" {
			all[e.Kind] = e.Reason
		}
	}
	for _, schema := range istio.Schemas().All() {
		kind := schema.GroupVersionKind
		want := traffic.WithoutEffect(kind)
		if want == "" {
			continue
		}
		does, not := s.policies.Effects(configstore.ConfigKey{Kind: kind, Namespace: "shop", Name: "one"})
		if all[kind] != want || len(does) > 0 || len(not) != 1 || not[0].Reason != want {
			t.Errorf("%s is found as %q, and its effects are %v, %v", kind.Kind, all[kind], does, not)
		}
		if _, not := s.policies.Effects(configstore.ConfigKey{Kind: kind, Namespace: "shop", Name: "other"}); not != nil {
			t.Errorf("an unknown %s has the effects %v", kind.Kind, not)
		}
	}
}

// TestMeshFieldsWithoutEffect: of a mesh configuration, what is set and nothing acts on is found, and nothing else.
func TestMeshFieldsWithoutEffect(t *testing.T) {
	t.Parallel()
	mesh := new(meshconfig.MeshConfig)
	const text = `{
		"rootNamespace": "istio-system", "trustDomain": "cluster.local", "enableAutoMtls": true, "connectTimeout": "5s",
		"trustDomainAliases": ["a"], "tcpKeepalive": {"probes": 3}, "outboundTrafficPolicy": {"mode": "ALLOW_ANY"}, "dnsRefreshRate": "5s",
		"defaultServiceExportTo": ["*"], "defaultVirtualServiceExportTo": ["*"], "defaultDestinationRuleExportTo": ["*"],
		"localityLbSetting": {"enabled": true}, "h2UpgradePolicy": "UPGRADE", "pathNormalization": {"normalization": "BASE"},
		"defaultHttpRetryPolicy": {"attempts": 1}, "defaultTrafficPolicy": {"connectionPool": {"tcp": {"maxConnections": 1}}, "outlierDetection": {"splitExternalLocalOriginErrors": true}},
		"serviceEntryVisibility": {"defaultVisibility": "PUBLIC"}, "ingressClass": "a", "ingressService": "a", "ingressControllerMode": "STRICT", "ingressSelector": "a",
		"accessLogFile": "/dev/stdout", "defaultProviders": {"metrics": ["prometheus"]}, "enablePrometheusMerge": true,
		"defaultConfig": {"discoveryAddress": "istiod.istio-system.svc:15012", "gatewayTopology": {"numTrustedProxies": 1},
			"proxyHeaders": {"attemptCount": {"disabled": true}, "server": {"disabled": true}, "requestId": {"disabled": true},
				"envoyDebugHeaders": {"disabled": true}, "xForwardedPort": {"enabled": true}, "xForwardedHost": {"enabled": true}}},
		"tlsDefaults": {"minProtocolVersion": "TLSV1_3", "cipherSuites": ["a"], "ecdhCurves": ["P-256"]}, "meshMTLS": {"minProtocolVersion": "TLSV1_3"},
		"extensionProviders": [
			{"name": "authz", "envoyExtAuthzGrpc": {"service": "authz.shop.svc.cluster.local", "port": 90}},
			{"name": "otel", "opentelemetry": {"service": "otel.shop.svc.cluster.local", "port": 4317}}]}`
	if err := protojson.Unmarshal([]byte(text), mesh); err != nil {
		t.Fatal(err)
	}
	svc := testService("shop", "cart.shop.svc.cluster.local", 80)
	const nothing, in = ": nothing acts on this field", "MeshConfig istio-system/mesh: "
	want := []string{
		in + `extensionProviders[1]: provider "otel" has no effect: only authorization services of Envoy (envoyExtAuthzGrpc, envoyExtAuthzHttp) are asked`,
		in + "accessLogFile" + nothing, in + "defaultConfig.discoveryAddress" + nothing, in + "defaultConfig.proxyHeaders.xForwardedHost" + nothing,
		in + "defaultProviders" + nothing, in + "enablePrometheusMerge" + nothing, in + "meshMTLS" + nothing,
	}
	if diff := cmp.Diff(want, stage(t, traffic.Options{Mesh: mesh}, nil, populate(svc)).ineffective()); diff != "" {
		t.Errorf("found (-want +got):\n%s", diff)
	}
	if found := stage(t, traffic.Options{}, nil, populate(svc)).ineffective(); found != nil {
		t.Errorf("of the defaults %q is found", found)
	}
}

// TestPoliciesOfSidecars: policies that only the inbound side of sidecars could enforce are found: by the protocols of their
// workloads, and by the sidecars that are connected.
func TestPoliciesOfSidecars(t *testing.T) {
	t.Parallel()
	web, rpc := testService("shop", "web.shop.svc.cluster.local", 80), testService("shop", "rpc.shop.svc.cluster.local", 90)
	rpc.Ports[0].Protocol = registry.ProtocolGRPC
	services := populate(web, rpc)
	services.place(web, "10.0.0.1 app=web")
	services.place(rpc, "10.0.0.2 app=rpc")
	const deny = `{"action": "DENY", "selector": {"matchLabels": {"app": "%"}}, "rules": [{}]}`
	s := stage(t, traffic.Options{}, objectsOf(t,
		`AuthorizationPolicy shop/web `+strings.ReplaceAll(deny, "%", "web"), `AuthorizationPolicy shop/rpc `+strings.ReplaceAll(deny, "%", "rpc"),
		`AuthorizationPolicy shop/all {"action": "DENY", "rules": [{}]}`,
		`AuthorizationPolicy istio-system/mesh {"action": "DENY", "rules": [{}]}`,
		`AuthorizationPolicy billing/all {"action": "DENY", "rules": [{}]}`,
		`PeerAuthentication shop/strict {"mtls": {"mode": "STRICT"}}`,
	), services)
	const noRouter = "only gateways and gRPC servers enforce it, and no Gateway is for routers that it selects, and "
	without := []string{
		"AuthorizationPolicy billing/all: " + noRouter + "no service has a workload that it does",
		"AuthorizationPolicy shop/web: " + noRouter + "no port of the workloads that it does has the protocol GRPC: sidecars do not enforce it",
	}
	if diff := cmp.Diff(without, s.ineffective()); diff != "" {
		t.Errorf("without a client (-want +got):\n%s", diff)
	}
	for _, id := range []string{"one", "two"} {
		n := in("sidecar", "shop", "app=rpc")
		n.Id = strings.Replace(n.GetId(), "~", "~"+id+"~", 1)
		c := s.connect(n)
		defer c.Close()
		s.must(c.Subscribe(envoy.ClusterType, "*"))
		s.answered(c)
	}
	var got []string
	for _, found := range s.ineffective() {
		if strings.Contains(found, "connected sidecars do not enforce it") {
			got = append(got, strings.Fields(found)[1])
		}
	}
	if diff := cmp.Diff([]string{"istio-system/mesh:", "shop/all:", "shop/rpc:", "shop/strict:"}, got); diff != "" {
		t.Errorf("with a sidecar (-want +got):\n%s", diff)
	}
}

// TestHiddenSubsets: subsets that clients of a namespace with a rule of its own do not have are found.
func TestHiddenSubsets(t *testing.T) {
	t.Parallel()
	const (
		public  = `DestinationRule shop/public {"host": "cart.shop.svc.cluster.local", "subsets": [{"name": "v1"}, {"name": "v2"}]}`
		own     = `DestinationRule billing/own {"host": "cart.shop.svc.cluster.local", "exportTo": ["."], "subsets": [{"name": "v2"}]}`
		message = "DestinationRule shop/public: spec.subsets[0]: clients of namespace billing have no subset \"v1\" of cart.shop.svc.cluster.local: "
	)
	for name, tc := range map[string]struct {
		objects []string
		want    []string
	}{
		"alone":        {[]string{public}, nil},
		"of one":       {[]string{public, own}, []string{message + "there DestinationRule billing/own counts instead"}},
		"by wildcard":  {[]string{public, strings.Replace(own, "cart.shop", "*", 1)}, []string{message + "there DestinationRule billing/own counts instead"}},
		"not exported": {[]string{strings.Replace(public, `"subsets"`, `"exportTo": ["."], "subsets"`, 1), own}, nil},
		"for some": {
			[]string{strings.Replace(public, `, {"name": "v2"}`, "", 1), strings.Replace(own, `"exportTo"`, `"workloadSelector": {"matchLabels": {"app": "a"}}, "exportTo"`, 1)},
			[]string{message + "there a DestinationRule counts instead that is not for all of them"},
		},
		"in the root namespace": {[]string{strings.Replace(public, "shop/public", "istio-system/public", 1), own}, []string{
			strings.Replace(message, "shop/public", "istio-system/public", 1) + "there DestinationRule billing/own counts instead",
		}},
		"a superset": {[]string{public, strings.Replace(own, `[{`, `[{"name": "v1"}, {`, 1)}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			svc := testService("shop", "cart.shop.svc.cluster.local", 80)
			if diff := cmp.Diff(tc.want, stage(t, traffic.Options{}, objectsOf(t, tc.objects...), populate(svc)).ineffective()); diff != "" {
				t.Errorf("found (-want +got):\n%s", diff)
			}
		})
	}
}
