// SPDX-License-Identifier: Apache-2.0

package xdsbuild_test

import (
	"testing"
)

// TestUpstreamLevels: the levels of a policy: the service, its ports and subsets.
func TestUpstreamLevels(t *testing.T) {
	checkClusters(t, []upstreamCase{
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
	})
}
