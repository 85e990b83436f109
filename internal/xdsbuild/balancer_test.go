// SPDX-License-Identifier: Apache-2.0

package xdsbuild_test

import (
	"testing"
)

// TestUpstreamBalancers: load balancers, and localities without endpoints.
func TestUpstreamBalancers(t *testing.T) {
	checkClusters(t, []upstreamCase{
		{name: "round robin", rule: `{"trafficPolicy":{"loadBalancer":{"simple":"ROUND_ROBIN"}}}`, want: plain},
		{name: "random", rule: `{"trafficPolicy":{"loadBalancer":{"simple":"RANDOM"}}}`, want: plain + `,"lbPolicy":"RANDOM"`},
		{name: "least connections", rule: `{"trafficPolicy":{"loadBalancer":{"simple":"LEAST_CONN"}}}`, want: least},
		{
			name: "passthrough", rule: `{"trafficPolicy":{"loadBalancer":{"simple":"PASSTHROUGH"}}}`,
			want: `"commonLbConfig":{"healthyPanicThreshold":{}},"connectTimeout":"10s","lbPolicy":"CLUSTER_PROVIDED","type":"ORIGINAL_DST"`,
		},
		{
			name: "a subset of a passthrough", subset: "v1", want: `"lbPolicy":"RANDOM",` + plain,
			rule: `{"trafficPolicy":{"loadBalancer":{"simple":"PASSTHROUGH"}},"subsets":[{"name":"v1","trafficPolicy":{"loadBalancer":{"simple":"RANDOM"}}}]}`,
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
			name: "distribution", rule: `{"trafficPolicy":{"loadBalancer":{"localityLbSetting":{"distribute":[{"from":"eu","to":{"us":100}}]}}}}`,
			want: `"commonLbConfig":{"healthyPanicThreshold":{},"localityWeightedLbConfig":{}},"connectTimeout":"10s","type":"EDS","lbPolicy":"LEAST_REQUEST"`,
		},
		{
			name: "failover without outlier detection",
			rule: `{"trafficPolicy":{"loadBalancer":{"localityLbSetting":{"failover":[{"from":"eu","to":"us"}]}}}}`, want: least,
		},
	})
}
