// SPDX-License-Identifier: Apache-2.0

package xdsbuild_test

import (
	"testing"

	"github.com/pilotkit/pilotkit/registry"
)

// TestUpstreamConnections: connection pools, protocols and retry budgets.
func TestUpstreamConnections(t *testing.T) {
	checkClusters(t, []upstreamCase{
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
			want: least + optionsOf(`"commonHttpProtocolOptions":{},"explicitHttpConfig":{"http2ProtocolOptions":{"maxConcurrentStreams":11,"connectionKeepalive":{"interval":"5s","timeout":"1s"}}}`),
		},
		{
			name: "HTTP/2 options, HTTP/1", rule: `{"trafficPolicy":{"connectionPool":{"http":{"maxConcurrentStreams":11}}}}`,
			want: least + optionsOf(`"commonHttpProtocolOptions":{},`+http1),
		},
		{
			name: "HTTP/2 keep-alive, HTTP/1", rule: `{"trafficPolicy":{"connectionPool":{"http":{"http2KeepAlive":{"interval":"5s"}}}}}`,
			want: least + optionsOf(`"commonHttpProtocolOptions":{},`+http1),
		},
		{
			name: "HTTP/2 options, client protocol", rule: `{"trafficPolicy":{"connectionPool":{"http":{"useClientProtocol":true,"maxConcurrentStreams":11}}}}`,
			want: least + optionsOf(`"commonHttpProtocolOptions":{},"useDownstreamProtocolConfig":{"http2ProtocolOptions":{},"httpProtocolOptions":{}}`),
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
	})
}
