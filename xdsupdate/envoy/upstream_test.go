// SPDX-License-Identifier: Apache-2.0

package envoy_test

import (
	"fmt"
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
func upstream(tb testing.TB, svc *registry.Service, rule, subset string, mesh *meshconfig.MeshConfig) envoy.Upstream {
	tb.Helper()
	u := envoy.Upstream{Service: svc, Port: svc.Ports[0], Mesh: mesh, Proxy: &registry.Proxy{IPAddresses: []string{"10.9.0.1"}}}
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
	u.Policy = envoy.TrafficPolicy(dr.GetTrafficPolicy(), u.Port.Number, policy, mesh)
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
	hpo     = `"@type":"type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions"`
)

func tlsOf(context string) string {
	return `{"name":"envoy.transport_sockets.tls","typedConfig":` + context + `}`
}

func optionsOf(options string) string {
	return `,"typedExtensionProtocolOptions":{"envoy.extensions.upstreams.http.v3.HttpProtocolOptions":{` + hpo + `,` + options + `}}`
}

// TestUpstreamCluster: clusters of services under DestinationRules are what Istio
// sends, as recorded.
func TestUpstreamCluster(t *testing.T) {
	const http1 = `"explicitHttpConfig":{"httpProtocolOptions":{}}`
	tests := []struct {
		name, rule, subset string
		mesh               string
		change             func(u *envoy.Upstream)
		want               string
	}{
		{name: "no rule", want: least},
		{name: "no rule, HTTP/2", change: protocol(registry.ProtocolGRPC), want: least + optionsOf(`"explicitHttpConfig":{"http2ProtocolOptions":{}}`)},
		{
			name: "no rule, no protocol", change: protocol(registry.ProtocolUnsupported),
			want: least + optionsOf(`"useDownstreamProtocolConfig":{"http2ProtocolOptions":{},"httpProtocolOptions":{}}`),
		},
		{name: "no rule, TCP", change: protocol(registry.ProtocolTCP), want: least},
		{
			name: "TCP pool",
			rule: `{"trafficPolicy":{"connectionPool":{"tcp":{"maxConnections":100,"connectTimeout":"0.250s","maxConnectionDuration":"300s",
				"idleTimeout":"90s","tcpKeepalive":{"time":"7200s","interval":"75s","probes":3}}}}}`,
			want: `"circuitBreakers":{"thresholds":[{"maxConnections":100}]},"commonLbConfig":{"healthyPanicThreshold":{}},"connectTimeout":"0.250s",
				"lbPolicy":"LEAST_REQUEST","type":"EDS","upstreamConnectionOptions":{"tcpKeepalive":{"keepaliveInterval":75,"keepaliveProbes":3,"keepaliveTime":7200}}` +
				optionsOf(`"commonHttpProtocolOptions":{"idleTimeout":"90s","maxConnectionDuration":"300s"},`+http1),
		},
		{
			name: "keepalive over the mesh's", mesh: `{"enableAutoMtls":false,"connectTimeout":"3s","tcpKeepalive":{"time":"10s","probes":9}}`,
			rule: `{"trafficPolicy":{"connectionPool":{"tcp":{"tcpKeepalive":{"time":"60s"}}}}}`,
			want: `"commonLbConfig":{"healthyPanicThreshold":{}},"connectTimeout":"3s","lbPolicy":"LEAST_REQUEST","type":"EDS",
				"upstreamConnectionOptions":{"tcpKeepalive":{"keepaliveTime":60,"keepaliveProbes":9}}`,
		},
		{
			name: "HTTP pool",
			rule: `{"trafficPolicy":{"connectionPool":{"http":{"http1MaxPendingRequests":7,"http2MaxRequests":8,"maxRequestsPerConnection":9,
				"maxRetries":10,"idleTimeout":"15s","maxConcurrentStreams":11}}}}`,
			want: least + `,"circuitBreakers":{"thresholds":[{"maxPendingRequests":7,"maxRequests":8,"maxRetries":10}]}` +
				optionsOf(`"commonHttpProtocolOptions":{"idleTimeout":"15s","maxRequestsPerConnection":9},`+http1),
		},
		{name: "zeros", rule: `{"trafficPolicy":{"connectionPool":{"tcp":{"maxConnections":0},"http":{"maxRetries":0}}}}`, want: least},
		{
			name: "HTTP/2 options", change: protocol(registry.ProtocolHTTP2),
			rule: `{"trafficPolicy":{"connectionPool":{"http":{"maxConcurrentStreams":11,"http2KeepAlive":{"interval":"5s","timeout":"1s"}}}}}`,
			want: least + optionsOf(`"explicitHttpConfig":{"http2ProtocolOptions":{"maxConcurrentStreams":11,"connectionKeepalive":{"interval":"5s","timeout":"1s"}}}`),
		},
		{
			name: "upgrade", rule: `{"trafficPolicy":{"connectionPool":{"http":{"h2UpgradePolicy":"UPGRADE"}}}}`,
			want: least + optionsOf(`"explicitHttpConfig":{"http2ProtocolOptions":{}}`),
		},
		{
			name: "upgrade of the mesh", mesh: `{"enableAutoMtls":false,"h2UpgradePolicy":"UPGRADE"}`,
			want: least + optionsOf(`"explicitHttpConfig":{"http2ProtocolOptions":{}}`),
		},
		{name: "upgrade of the mesh, TCP", mesh: `{"enableAutoMtls":false,"h2UpgradePolicy":"UPGRADE"}`, change: protocol(registry.ProtocolTCP), want: least},
		{
			name: "no upgrade", mesh: `{"enableAutoMtls":false,"h2UpgradePolicy":"UPGRADE"}`,
			rule: `{"trafficPolicy":{"connectionPool":{"http":{"h2UpgradePolicy":"DO_NOT_UPGRADE"}}}}`, want: least,
		},
		{
			name: "client protocol", rule: `{"trafficPolicy":{"connectionPool":{"http":{"useClientProtocol":true}}}}`,
			want: least + optionsOf(`"useDownstreamProtocolConfig":{"http2ProtocolOptions":{},"httpProtocolOptions":{}}`),
		},
		{
			name: "retry budget", rule: `{"trafficPolicy":{"retryBudget":{"percent":30,"minRetryConcurrency":5}}}`,
			want: least + `,"circuitBreakers":{"thresholds":[{"retryBudget":{"budgetPercent":{"value":30},"minRetryConcurrency":5}}]}`,
		},
		{
			name: "retry budget, defaults", rule: `{"trafficPolicy":{"retryBudget":{}}}`,
			want: least + `,"circuitBreakers":{"thresholds":[{"retryBudget":{"budgetPercent":{"value":20},"minRetryConcurrency":3}}]}`,
		},
		{
			name: "outliers",
			rule: `{"trafficPolicy":{"outlierDetection":{"consecutive5xxErrors":7,"consecutiveGatewayErrors":3,"interval":"5s","baseEjectionTime":"30s",
				"maxEjectionPercent":50,"minHealthPercent":20,"splitExternalLocalOriginErrors":true,"consecutiveLocalOriginFailures":4}}}`,
			want: `"commonLbConfig":{"healthyPanicThreshold":{"value":20}},"connectTimeout":"10s","type":"EDS","lbPolicy":"LEAST_REQUEST",
				"outlierDetection":{"baseEjectionTime":"30s","consecutive5xx":7,"consecutiveGatewayFailure":3,"consecutiveLocalOriginFailure":4,
				"enforcingConsecutive5xx":100,"enforcingConsecutiveGatewayFailure":100,"enforcingConsecutiveLocalOriginFailure":100,
				"enforcingLocalOriginSuccessRate":0,"enforcingSuccessRate":0,"interval":"5s","maxEjectionPercent":50,"splitExternalLocalOriginErrors":true}`,
		},
		{
			name: "outliers, empty", rule: `{"trafficPolicy":{"outlierDetection":{}}}`,
			want: least + `,"outlierDetection":{"enforcingSuccessRate":0}`,
		},
		{
			name: "outliers, off", rule: `{"trafficPolicy":{"outlierDetection":{"consecutive5xxErrors":0}}}`,
			want: least + `,"outlierDetection":{"consecutive5xx":0,"enforcingConsecutive5xx":0,"enforcingSuccessRate":0}`,
		},
		{
			name: "outliers, codes", rule: `{"trafficPolicy":{"outlierDetection":{"outlierDetectionHttpErrorCodes":[429,503]}}}`,
			want: least + `,"outlierDetection":{"enforcingSuccessRate":0}` + optionsOf(http1+`,"outlierDetection":{"errorMatcher":{"orMatch":{"rules":[
				{"httpResponseHeadersMatch":{"headers":[{"name":":status","stringMatch":{"exact":"429"}}]}},
				{"httpResponseHeadersMatch":{"headers":[{"name":":status","stringMatch":{"exact":"503"}}]}}]}}}`),
		},
		{
			name: "outliers, one code", rule: `{"trafficPolicy":{"outlierDetection":{"outlierDetectionHttpErrorCodes":[429]}}}`,
			want: least + `,"outlierDetection":{"enforcingSuccessRate":0}` + optionsOf(http1+`,"outlierDetection":{"errorMatcher":{
				"httpResponseHeadersMatch":{"headers":[{"name":":status","stringMatch":{"exact":"429"}}]}}}`),
		},
		{
			name: "outliers of the mesh", mesh: `{"enableAutoMtls":false,"defaultTrafficPolicy":{"outlierDetection":{"consecutive5xxErrors":4}}}`,
			want: least + `,"outlierDetection":{"consecutive5xx":4,"enforcingConsecutive5xx":100,"enforcingSuccessRate":0}`,
		},
		{name: "round robin", rule: `{"trafficPolicy":{"loadBalancer":{"simple":"ROUND_ROBIN"}}}`, want: plain},
		{name: "random", rule: `{"trafficPolicy":{"loadBalancer":{"simple":"RANDOM"}}}`, want: plain + `,"lbPolicy":"RANDOM"`},
		{name: "least connections", rule: `{"trafficPolicy":{"loadBalancer":{"simple":"LEAST_CONN"}}}`, want: least},
		{
			name: "passthrough", rule: `{"trafficPolicy":{"loadBalancer":{"simple":"PASSTHROUGH"}}}`,
			want: `"commonLbConfig":{"healthyPanicThreshold":{}},"connectTimeout":"10s","lbPolicy":"CLUSTER_PROVIDED","type":"ORIGINAL_DST"`,
		},
		{
			name: "ring hash", rule: `{"trafficPolicy":{"loadBalancer":{"consistentHash":{"useSourceIp":true}}}}`,
			want: plain + `,"lbPolicy":"RING_HASH","ringHashLbConfig":{"minimumRingSize":"1024"}`,
		},
		{
			name: "ring hash, old size", rule: `{"trafficPolicy":{"loadBalancer":{"consistentHash":{"useSourceIp":true,"minimumRingSize":64}}}}`,
			want: plain + `,"lbPolicy":"RING_HASH","ringHashLbConfig":{"minimumRingSize":"64"}`,
		},
		{
			name: "ring hash, no size", rule: `{"trafficPolicy":{"loadBalancer":{"consistentHash":{"useSourceIp":true,"ringHash":{}}}}}`,
			want: plain + `,"lbPolicy":"RING_HASH"`,
		},
		{
			name: "maglev", rule: `{"trafficPolicy":{"loadBalancer":{"consistentHash":{"useSourceIp":true,"maglev":{"tableSize":101}}}}}`,
			want: plain + `,"lbPolicy":"MAGLEV","maglevLbConfig":{"tableSize":"101"}`,
		},
		{
			name: "warmup", rule: `{"trafficPolicy":{"loadBalancer":{"simple":"ROUND_ROBIN","warmup":{"duration":"10s"}}}}`,
			want: plain + `,"roundRobinLbConfig":{"slowStartConfig":{"slowStartWindow":"10s","minWeightPercent":{"value":10},
				"aggression":{"defaultValue":1,"runtimeKey":"slow_start.aggression"}}}`,
		},
		{
			name: "warmup, old field", rule: `{"trafficPolicy":{"loadBalancer":{"warmupDurationSecs":"10s"}}}`,
			want: least + `,"leastRequestLbConfig":{"slowStartConfig":{"slowStartWindow":"10s"}}`,
		},
		{
			name: "simple TLS", rule: `{"trafficPolicy":{"tls":{"mode":"SIMPLE"}}}`,
			want: least + `,"transportSocket":` + tlsOf(`{`+context+`,"commonTlsContext":{`+system+`,`+params+`}}`) +
				optionsOf(http1+`,"upstreamHttpProtocolOptions":{"autoSanValidation":true,"autoSni":true}`),
		},
		{
			name: "simple TLS, unverified", rule: `{"trafficPolicy":{"tls":{"mode":"SIMPLE","insecureSkipVerify":true}}}`,
			want: least + `,"transportSocket":` + tlsOf(`{`+context+`,"commonTlsContext":{`+params+`,"validationContext":{}}}`) +
				optionsOf(http1+`,"upstreamHttpProtocolOptions":{"autoSni":true}`),
		},
		{
			name: "simple TLS with names",
			rule: `{"trafficPolicy":{"tls":{"mode":"SIMPLE","sni":"cart.example.com","subjectAltNames":["cart.example.com","spiffe://x/y"],"caCertificates":"/etc/ca.pem"}}}`,
			want: least + `,"transportSocket":` + tlsOf(`{`+context+`,"commonTlsContext":{"combinedValidationContext":{"defaultValidationContext":{
				"matchSubjectAltNames":[{"exact":"cart.example.com"},{"exact":"spiffe://x/y"}]},"validationContextSdsSecretConfig":{"name":"file-root:/etc/ca.pem"}},`+
				params+`},"sni":"cart.example.com"}`),
		},
		{
			name: "TLS on HTTP/2", change: protocol(registry.ProtocolGRPC), rule: `{"trafficPolicy":{"tls":{"mode":"SIMPLE","sni":"s"}}}`,
			want: least + `,"transportSocket":` + tlsOf(`{`+context+`,"commonTlsContext":{"alpnProtocols":["h2"],`+system+`,`+params+`},"sni":"s"}`) +
				optionsOf(`"explicitHttpConfig":{"http2ProtocolOptions":{}}`),
		},
		{
			name: "mutual TLS, files",
			rule: `{"trafficPolicy":{"tls":{"mode":"MUTUAL","clientCertificate":"/etc/c.pem","privateKey":"/etc/k.pem","caCertificates":"/etc/ca.pem","sni":"s"}}}`,
			want: least + `,"transportSocket":` + tlsOf(`{`+context+`,"commonTlsContext":{"combinedValidationContext":{"defaultValidationContext":{},
				"validationContextSdsSecretConfig":{"name":"file-root:/etc/ca.pem"}},"tlsCertificateSdsSecretConfigs":[{"name":"file-cert:/etc/c.pem~/etc/k.pem"}],`+
				params+`},"sni":"s"}`),
		},
		{name: "credentials without a selector", rule: `{"trafficPolicy":{"tls":{"mode":"MUTUAL","credentialName":"c"}}}`, want: least},
		{
			name: "credentials with a selector",
			rule: `{"workloadSelector":{"matchLabels":{"a":"b"}},"trafficPolicy":{"tls":{"mode":"MUTUAL","credentialName":"c","sni":"s"}}}`,
			want: least + `,"transportSocket":` + tlsOf(`{`+context+`,"commonTlsContext":{"combinedValidationContext":{"defaultValidationContext":{},
				"validationContextSdsSecretConfig":{"name":"kubernetes://c-cacert"}},"tlsCertificateSdsSecretConfigs":[{"name":"kubernetes://c"}],`+params+`},"sni":"s"}`),
		},
		{
			name: "credentials of a gateway", rule: `{"trafficPolicy":{"tls":{"mode":"SIMPLE","credentialName":"c","sni":"s"}}}`,
			change: func(u *envoy.Upstream) { u.Gateway = true },
			want: least + `,"transportSocket":` + tlsOf(`{`+context+`,"commonTlsContext":{"combinedValidationContext":{"defaultValidationContext":{},
				"validationContextSdsSecretConfig":{"name":"kubernetes://c-cacert"}},`+params+`},"sni":"s"}`),
		},
		{
			name: "TLS of the mesh", rule: `{"trafficPolicy":{"tls":{"mode":"ISTIO_MUTUAL","sni":"own.example.com","subjectAltNames":["spiffe://a/b"]}}}`,
			want: least + `,"transportSocket":` + meshTLS(`[{"exact":"spiffe://a/b"}]`, "own.example.com"),
		},
		{
			name: "automatic TLS", mesh: `{}`,
			change: func(u *envoy.Upstream) { u.Identities = []string{"spiffe://x"} },
			want: least + `,"transportSocketMatches":[{"match":{"tlsMode":"istio"},"name":"tlsMode-istio","transportSocket":` +
				meshTLS(`[{"exact":"spiffe://x"}]`, "outbound_.80_._.a.com") +
				`},{"match":{},"name":"tlsMode-disabled","transportSocket":{"name":"envoy.transport_sockets.raw_buffer",
				"typedConfig":{"@type":"type.googleapis.com/envoy.extensions.transport_sockets.raw_buffer.v3.RawBuffer"}}}]`,
		},
		{name: "automatic TLS, external", mesh: `{}`, change: func(u *envoy.Upstream) { u.Service.MeshExternal = true }, want: least},
		{name: "automatic TLS, disabled", mesh: `{}`, rule: `{"trafficPolicy":{"tls":{"mode":"DISABLE"}}}`, want: least},
		{
			name: "PROXY protocol", rule: `{"trafficPolicy":{"proxyProtocol":{"version":"V2"}}}`,
			want: least + `,"transportSocket":{"name":"envoy.transport_sockets.upstream_proxy_protocol","typedConfig":{
				"@type":"type.googleapis.com/envoy.extensions.transport_sockets.proxy_protocol.v3.ProxyProtocolUpstreamTransport","config":{"version":"V2"},
				"transportSocket":{"name":"raw_buffer",
				"typedConfig":{"@type":"type.googleapis.com/envoy.extensions.transport_sockets.raw_buffer.v3.RawBuffer"}}}}`,
		},
		{
			name: "a subset inherits",
			rule: `{"trafficPolicy":{"connectionPool":{"tcp":{"maxConnections":10},"http":{"maxRetries":3}},"loadBalancer":{"simple":"RANDOM"}},
				"subsets":[{"name":"v2","trafficPolicy":{"connectionPool":{"http":{"maxRetries":5}}}}]}`,
			subset: "v2", want: plain + `,"lbPolicy":"RANDOM","circuitBreakers":{"thresholds":[{"maxRetries":5}]}`,
		},
		{
			name: "port level settings replace",
			rule: `{"trafficPolicy":{"connectionPool":{"tcp":{"maxConnections":10}},"retryBudget":{},"portLevelSettings":[{"port":{"number":80},"loadBalancer":{"simple":"ROUND_ROBIN"}}]}}`,
			want: plain,
		},
		{
			name: "port level settings of a subset reset",
			rule: `{"trafficPolicy":{"connectionPool":{"tcp":{"maxConnections":10}},"retryBudget":{}},
				"subsets":[{"name":"v2","trafficPolicy":{"portLevelSettings":[{"port":{"number":80},"loadBalancer":{"simple":"ROUND_ROBIN"}}]}}]}`,
			subset: "v2", want: plain + `,"circuitBreakers":{"thresholds":[{"retryBudget":{"budgetPercent":{"value":20},"minRetryConcurrency":3}}]}`,
		},
		{
			name: "distribution", rule: `{"trafficPolicy":{"loadBalancer":{"localityLbSetting":{"distribute":[{"from":"eu","to":{"us":100}}]}}}}`,
			want: `"commonLbConfig":{"healthyPanicThreshold":{},"localityWeightedLbConfig":{}},"connectTimeout":"10s","type":"EDS","lbPolicy":"LEAST_REQUEST"`,
		},
		{
			name: "failover without outlier detection",
			rule: `{"trafficPolicy":{"loadBalancer":{"localityLbSetting":{"failover":[{"from":"eu","to":"us"}]}}}}`, want: least,
		},
		{
			name: "gRPC client, least request", change: forGRPC, rule: `{"trafficPolicy":{"loadBalancer":{"simple":"LEAST_REQUEST"}}}`,
			want: `"type":"EDS","lbPolicy":"LEAST_REQUEST"`,
		},
		{name: "gRPC client, no rule", change: forGRPC, want: `"type":"EDS"`},
		{name: "gRPC client, random", change: forGRPC, rule: `{"trafficPolicy":{"loadBalancer":{"simple":"RANDOM"}}}`, want: `"type":"EDS"`},
		{name: "gRPC client, passthrough", change: forGRPC, rule: `{"trafficPolicy":{"loadBalancer":{"simple":"PASSTHROUGH"}}}`, want: `"type":"EDS"`},
		{
			name: "gRPC client, maglev", change: forGRPC,
			rule: `{"trafficPolicy":{"loadBalancer":{"consistentHash":{"httpHeaderName":"x","maglev":{"tableSize":101}}}}}`,
			want: `"type":"EDS","lbPolicy":"RING_HASH","ringHashLbConfig":{"minimumRingSize":"1024"}`,
		},
		{
			name: "gRPC client, limits", change: forGRPC,
			rule: `{"trafficPolicy":{"connectionPool":{"tcp":{"maxConnections":3},"http":{"http2MaxRequests":5}},"outlierDetection":{}}}`,
			want: `"type":"EDS","circuitBreakers":{"thresholds":[{"maxRequests":5}]}`,
		},
		{
			name: "gRPC client, outliers", change: func(u *envoy.Upstream) { u.Client, u.OutliersForGRPC = envoy.ForGRPC, true },
			rule: `{"trafficPolicy":{"outlierDetection":{"consecutive5xxErrors":3,"consecutiveGatewayErrors":2,"interval":"1s","maxEjectionPercent":50}}}`,
			want: `"type":"EDS","outlierDetection":{"interval":"1s","maxEjectionPercent":50,"enforcingSuccessRate":0,"enforcingFailurePercentage":100,
				"failurePercentageThreshold":99,"failurePercentageMinimumHosts":1,"failurePercentageRequestVolume":2}`,
		},
		{
			name: "gRPC client, outliers without a number", change: func(u *envoy.Upstream) { u.Client, u.OutliersForGRPC = envoy.ForGRPC, true },
			rule: `{"trafficPolicy":{"outlierDetection":{}}}`, want: `"type":"EDS"`,
		},
		{name: "gRPC client, simple TLS", change: forGRPC, rule: `{"trafficPolicy":{"tls":{"mode":"SIMPLE"}}}`, want: `"type":"EDS"`},
		{
			name: "gRPC client, TLS of the mesh", rule: `{"trafficPolicy":{"tls":{"mode":"ISTIO_MUTUAL"}}}`,
			change: func(u *envoy.Upstream) { u.Client, u.Identities = envoy.ForGRPC, []string{"spiffe://x"} },
			want: `"type":"EDS","transportSocket":` + tlsOf(`{`+context+`,"commonTlsContext":{"combinedValidationContext":{"defaultValidationContext":{
				"caCertificateProviderInstance":{"certificateName":"ROOTCA","instanceName":"default"},"matchSubjectAltNames":[{"exact":"spiffe://x"}]},
				"validationContextCertificateProviderInstance":{"certificateName":"ROOTCA","instanceName":"default"}},
				"tlsCertificateCertificateProviderInstance":{"certificateName":"default","instanceName":"default"},
				"tlsCertificateProviderInstance":{"certificateName":"default","instanceName":"default"}}}`),
		},
	}
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

func protocol(p registry.Protocol) func(*envoy.Upstream) {
	return func(u *envoy.Upstream) { u.Port.Protocol = p }
}

func forGRPC(u *envoy.Upstream) { u.Client = envoy.ForGRPC }

func meshTLS(names, sni string) string {
	return tlsOf(`{` + context + `,"commonTlsContext":{"alpnProtocols":["istio-peer-exchange","istio"],"combinedValidationContext":{
		"defaultValidationContext":{"matchSubjectAltNames":` + names + `},"validationContextSdsSecretConfig":{"name":"ROOTCA"}},
		"tlsCertificateSdsSecretConfigs":[{"name":"default"}],` + params + `},"sni":"` + sni + `"}`)
}

// TestUpstreamDNS: the endpoints of a DNS service are in the cluster, with their
// priorities and those of the subset only.
func TestUpstreamDNS(t *testing.T) {
	labelled := func(l registry.Labels) func(*registry.Endpoint) {
		return func(e *registry.Endpoint) { e.Shared.Labels = l }
	}
	endpoints := []*registry.Endpoint{
		endpoint("eu.example.com", locality("eu/a/1"), weight(2), labelled(registry.Labels{"region": "eu"})),
		endpoint("us.example.com", locality("us/a/1"), labelled(registry.Labels{"region": "us"})),
	}
	const rule = `{"trafficPolicy":{"outlierDetection":{"consecutive5xxErrors":5}},"subsets":[{"name":"us","labels":{"region":"us"}},{"name":"none","labels":{"region":"x"}}]}`
	for _, tc := range []struct {
		name, subset string
		addresses    []string
		want         []string
		family       clusterv3.Cluster_DnsLookupFamily
	}{
		{
			name: "the service", addresses: []string{"10.9.0.1"}, family: clusterv3.Cluster_V4_ONLY,
			want: []string{"eu/a/1@0=2 eu.example.com:8080*2/HEALTHY", "us/a/1@1=1 us.example.com:8080/HEALTHY"},
		},
		{
			name: "a subset", subset: "us", addresses: []string{"2001:db8::1"}, family: clusterv3.Cluster_V6_ONLY,
			want: []string{"us/a/1@0=1 us.example.com:8080/HEALTHY"},
		},
		{name: "a subset without endpoints", subset: "none"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			u := upstream(t, service(registry.DNSLB), rule, tc.subset, nil)
			u.Endpoints = endpoints
			u.Proxy = &registry.Proxy{Locality: "eu/a/1", IPAddresses: tc.addresses}
			c := u.Cluster()
			if c == nil {
				check(t, "no cluster", []string(nil), tc.want)
				return
			}
			check(t, "endpoints", text(c.GetLoadAssignment()), tc.want)
			check(t, "family", c.GetDnsLookupFamily(), tc.family)
			check(t, "jitter", c.GetDnsJitter().AsDuration().String(), "100ms") //nolint:staticcheck // see setResolver
		})
	}
}

// TestFailoverPriorityOfDNS: the labels of a failoverPriority give priorities to the
// endpoints of a DNS service wherever they are.
func TestFailoverPriorityOfDNS(t *testing.T) {
	u := upstream(t, service(registry.DNSLB), `{"trafficPolicy":{"outlierDetection":{},"loadBalancer":{"localityLbSetting":{"failoverPriority":["tier"]}}}}`, "", nil)
	u.Endpoints = []*registry.Endpoint{
		endpoint("a.example.com", locality("eu/a/1"), labels("tier=green")), endpoint("b.example.com", locality("eu/a/1"), labels("tier=blue")),
		endpoint("c.example.com", locality("us/a/1"), labels("tier=blue")), endpoint("d.example.com", locality("asia/a/1"), labels("tier=green")),
	}
	u.Proxy = &registry.Proxy{Locality: "eu/a/1", Labels: registry.Labels{"tier": "blue"}}
	c := u.Cluster()
	if err := accepted(u.Client, c); err != nil {
		t.Error(err)
	}
	check(t, "endpoints", text(c.GetLoadAssignment()), []string{
		"eu/a/1@0=1 b.example.com:8080/HEALTHY", "us/a/1@0=1 c.example.com:8080/HEALTHY",
		"asia/a/1@1=1 d.example.com:8080/HEALTHY", "eu/a/1@1=1 a.example.com:8080/HEALTHY",
	})
}

// TestPassthroughPorts: where a service without endpoints has another target port,
// connections go there.
func TestPassthroughPorts(t *testing.T) {
	svc := service(registry.Passthrough)
	svc.Attributes.PassthroughTargetPorts = map[uint32]uint32{80: 8080}
	u := envoy.Upstream{Service: svc, Port: svc.Ports[0]}
	check(t, "override", u.Cluster().GetOriginalDstLbConfig().GetUpstreamPortOverride().GetValue(), uint32(8080))
	for target, want := range map[uint32]bool{65535: true, 65536: false} { // Envoy refuses what is no port
		svc.Attributes.PassthroughTargetPorts[80] = target
		check(t, fmt.Sprint("a cluster with port ", target), u.Cluster() != nil, want)
	}
	u.Gateway = true
	check(t, "on a gateway", u.Cluster().GetType(), clusterv3.Cluster_EDS)
}

func TestSubsetNames(t *testing.T) {
	for _, n := range []struct{ name, subset string }{{"outbound|80|v1|a.com", "v1"}, {"outbound|80||a.com", ""}} {
		port, subset, host, ok := envoy.ParseSubsetClusterName(n.name)
		if !ok || port != 80 || subset != n.subset || host != "a.com" || envoy.SubsetClusterName(port, subset, host) != n.name {
			t.Errorf("ParseSubsetClusterName(%q) = %d %q %q %t", n.name, port, subset, host, ok)
		}
	}
	for _, n := range []struct{ name, subset string }{{"outbound_.80_.v1_.a.com", "v1"}, {"outbound_.80_._.a.com", ""}} {
		port, subset, host, ok := envoy.ParseSNIName(n.name)
		if !ok || port != 80 || subset != n.subset || host != "a.com" || envoy.SNIName(port, subset, host) != n.name {
			t.Errorf("ParseSNIName(%q) = %d %q %q %t", n.name, port, subset, host, ok)
		}
	}
	for _, bad := range []string{"outbound|80|a.com", "outbound|080||a.com", "outbound|80|v1|", "outbound_.80_.v1_.a.com", "inbound|80||", ""} {
		if _, _, _, ok := envoy.ParseSubsetClusterName(bad); ok {
			t.Errorf("ParseSubsetClusterName(%q) ok", bad)
		}
	}
}
