// SPDX-License-Identifier: Apache-2.0

package xdsbuild_test

import (
	"math"
	"strings"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/testing/protocmp"
	meshconfig "istio.io/api/mesh/v1alpha1"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/internal/xdsbuild"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

func parse[M proto.Message](tb testing.TB, text string, m M) M {
	tb.Helper()
	if err := protojson.Unmarshal([]byte(text), m); err != nil {
		tb.Fatalf("%v in %s", err, text)
	}
	return m
}

// upstream returns the upstream of the first port under a DestinationRule in JSON.
func upstream(tb testing.TB, svc *registry.Service, rule, subset string, mesh *meshconfig.MeshConfig) xdsbuild.Upstream {
	tb.Helper()
	u := xdsbuild.Upstream{Service: svc, Port: svc.Ports[0], Mesh: mesh, Proxy: &registry.Proxy{IPAddresses: []string{"10.9.0.1"}}}
	if rule == "" {
		rule = "{}"
	}
	dr := parse(tb, rule, &networking.DestinationRule{})
	var policy *networking.TrafficPolicy
	for _, s := range dr.GetSubsets() {
		if s.GetName() == subset {
			u.Subset, u.Labels, policy = subset, s.GetLabels(), s.GetTrafficPolicy()
		}
	}
	u.Policy = xdsbuild.TrafficPolicy(dr.GetTrafficPolicy(), u.Port.Number, policy, mesh)
	u.SelectedByLabels = dr.GetWorkloadSelector() != nil
	return u
}

// reducedCluster returns what matters of a cluster, as the recorded cases have it: without
// metadata, where secrets come from, and limits that are none.
func reducedCluster(c *clusterv3.Cluster) *clusterv3.Cluster {
	if c == nil {
		return nil
	}
	c = proto.CloneOf(c)
	c.Metadata, c.EdsClusterConfig = nil, nil
	dropUnlimited(c)
	if ring := c.GetRingHashLbConfig(); ring != nil {
		// Not recorded: TestRings.
		if ring.MaximumRingSize = nil; ring.MinimumRingSize == nil {
			c.LbConfig = nil
		}
	}
	for _, s := range append([]*core.TransportSocket{c.GetTransportSocket()}, sockets(c)...) {
		if s != nil {
			dropSources(s)
		}
	}
	return c
}

func sockets(c *clusterv3.Cluster) []*core.TransportSocket {
	var out []*core.TransportSocket
	for _, m := range c.GetTransportSocketMatches() {
		out = append(out, m.GetTransportSocket())
	}
	return out
}

func dropUnlimited(c *clusterv3.Cluster) {
	for _, t := range c.GetCircuitBreakers().GetThresholds() {
		m := t.ProtoReflect()
		m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
			if f.Message() != nil && f.Message().FullName() == "google.protobuf.UInt32Value" &&
				v.Message().Get(f.Message().Fields().ByName("value")).Uint() == math.MaxUint32 {
				m.Clear(f)
			}
			return true
		})
		if proto.Size(t) == 0 {
			c.CircuitBreakers = nil
		}
	}
}

// dropSources drops the sources of secrets: they are all ADS.
func dropSources(s *core.TransportSocket) {
	m, err := s.GetTypedConfig().UnmarshalNew()
	if err != nil {
		panic(err)
	}
	text, _ := protojson.Marshal(m)
	clean := strings.NewReplacer(`,"sdsConfig":{"ads":{},"resourceApiVersion":"V3"}`, "", `, "sdsConfig":{"ads":{}, "resourceApiVersion":"V3"}`, "").Replace(string(text))
	if strings.Contains(clean, "sdsConfig") {
		panic("a secret of another source: " + clean)
	}
	back := m.ProtoReflect().New().Interface()
	if err := protojson.Unmarshal([]byte(clean), back); err != nil {
		panic(err)
	}
	_ = s.GetTypedConfig().MarshalFrom(back)
}

const (
	plain   = `"commonLbConfig":{"healthyPanicThreshold":{}},"connectTimeout":"10s","type":"EDS"`
	least   = plain + `,"lbPolicy":"LEAST_REQUEST"`
	context = `"@type":"type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext"`
	params  = `"tlsParams":{"tlsMaximumProtocolVersion":"TLSv1_3","tlsMinimumProtocolVersion":"TLSv1_2"}`
	system  = `"combinedValidationContext":{"defaultValidationContext":{},"validationContextSdsSecretConfig":{"name":"file-root:system"}}`
	http1   = `"explicitHttpConfig":{"httpProtocolOptions":{}}`
	hpo     = `"@type":"type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions"`
)

func tlsOf(context string) string {
	return `{"name":"envoy.transport_sockets.tls","typedConfig":` + context + `}`
}

func optionsOf(options string) string {
	return `,"typedExtensionProtocolOptions":{"envoy.extensions.upstreams.http.v3.HttpProtocolOptions":{` + hpo + `,` + options + `}}`
}

// upstreamCase is a cluster of a service under a DestinationRule, in JSON.
type upstreamCase struct {
	name, rule, subset string
	mesh               string
	change             func(u *xdsbuild.Upstream)
	want               string
}

// checkClusters demands that clusters are what Istio sends, as recorded, and that their
// clients accept them.
func checkClusters(t *testing.T, tests []upstreamCase) {
	t.Helper()
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			mesh := parse(t, `{"enableAutoMtls":false}`, &meshconfig.MeshConfig{})
			if tc.mesh != "" {
				mesh = parse(t, tc.mesh, &meshconfig.MeshConfig{})
			}
			u := upstream(t, service(registry.ClientSideLB), tc.rule, tc.subset, mesh)
			if tc.change != nil {
				tc.change(&u)
			}
			got := u.Cluster()
			if err := accepted(u.Client, got); err != nil {
				t.Error(err)
			}
			want := parse(t, `{"name":"`+envoy.SubsetClusterName(80, tc.subset, "a.com")+`",`+tc.want+`}`, &clusterv3.Cluster{})
			if diff := cmp.Diff(want, reducedCluster(got), protocmp.Transform()); diff != "" {
				t.Errorf("cluster (-want +got):\n%s", diff)
			}
		})
	}
}

func protocol(p registry.Protocol) func(*xdsbuild.Upstream) {
	return func(u *xdsbuild.Upstream) { u.Port.Protocol = p }
}

func forGRPC(u *xdsbuild.Upstream) { u.Client = envoy.ForGRPC }

// meshTLS is mutual TLS of the mesh to a port of HTTP/1.
func meshTLS(names, sni string) string {
	return tlsOf(`{` + context + `,"commonTlsContext":{"alpnProtocols":["istio-peer-exchange","istio","http/1.1"],"combinedValidationContext":{
		"defaultValidationContext":{"matchTypedSubjectAltNames":` + names + `},"validationContextSdsSecretConfig":{"name":"ROOTCA"}},
		"tlsCertificateSdsSecretConfigs":[{"name":"default"}],` + params + `},"sni":"` + sni + `"}`)
}
