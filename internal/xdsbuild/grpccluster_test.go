// SPDX-License-Identifier: Apache-2.0

package xdsbuild_test

import (
	"testing"

	"github.com/pilotkit/pilotkit/internal/xdsbuild"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// TestUpstreamOfGRPCClients: what gRPC clients take of all that.
func TestUpstreamOfGRPCClients(t *testing.T) {
	checkClusters(t, []upstreamCase{
		{
			name: "gRPC client, least request", change: forGRPC, rule: `{"trafficPolicy":{"loadBalancer":{"simple":"LEAST_REQUEST"}}}`,
			want: `"type":"EDS","lbPolicy":"LEAST_REQUEST"`,
		},
		{name: "gRPC client, no rule", change: forGRPC, want: `"type":"EDS"`},
		{name: "gRPC client, least connections", change: forGRPC, rule: `{"trafficPolicy":{"loadBalancer":{"simple":"LEAST_CONN"}}}`, want: `"type":"EDS"`},
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
			name: "gRPC client, outliers", change: func(u *xdsbuild.Upstream) { u.Client, u.OutliersForGRPC = envoy.ForGRPC, true },
			rule: `{"trafficPolicy":{"outlierDetection":{"consecutive5xxErrors":3,"consecutiveGatewayErrors":2,"interval":"1s","maxEjectionPercent":50}}}`,
			want: `"type":"EDS","outlierDetection":{"interval":"1s","maxEjectionPercent":50,"enforcingSuccessRate":0,"enforcingFailurePercentage":100,
				"failurePercentageThreshold":99,"failurePercentageMinimumHosts":1,"failurePercentageRequestVolume":2}`,
		},
		{
			name: "gRPC client, outliers without a number", change: func(u *xdsbuild.Upstream) { u.Client, u.OutliersForGRPC = envoy.ForGRPC, true },
			rule: `{"trafficPolicy":{"outlierDetection":{}}}`, want: `"type":"EDS"`,
		},
		{name: "gRPC client, simple TLS", change: forGRPC, rule: `{"trafficPolicy":{"tls":{"mode":"SIMPLE"}}}`, want: `"type":"EDS"`},
		{
			name: "gRPC client, TLS of the mesh", rule: `{"trafficPolicy":{"tls":{"mode":"ISTIO_MUTUAL"}}}`,
			change: func(u *xdsbuild.Upstream) { u.Client, u.Identities = envoy.ForGRPC, []string{"spiffe://x"} },
			want: `"type":"EDS","transportSocket":` + tlsOf(`{`+context+`,"commonTlsContext":{"combinedValidationContext":{"defaultValidationContext":{
				"caCertificateProviderInstance":{"certificateName":"ROOTCA","instanceName":"default"},"matchSubjectAltNames":[{"exact":"spiffe://x"}]},
				"validationContextCertificateProviderInstance":{"certificateName":"ROOTCA","instanceName":"default"}},
				"tlsCertificateCertificateProviderInstance":{"certificateName":"default","instanceName":"default"},
				"tlsCertificateProviderInstance":{"certificateName":"default","instanceName":"default"}}}`),
		},
	})
}
