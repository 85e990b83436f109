// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"fmt"
	"strings"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
)

// TestHashEntries: the requests to the newest services are not hashed where the rings
// of all would be too large; their clusters are there, the rest of the policy counts,
// and one of them is reported, with the DestinationRule.
func TestHashEntries(t *testing.T) {
	build := func(limit int) *scene {
		m := newMultiplying(t)
		for i := range 8 {
			m.service("evil", registry.Hostname(fmt.Sprintf("e%d.evil.example.com", i)), 80, 81)
		}
		m.object("DestinationRule", "evil/r", `{"host":"*.evil.example.com","trafficPolicy":{"connectionPool":{"tcp":{"maxConnections":7}},
			"loadBalancer":{"consistentHash":{"httpHeaderName":"x","ringHash":{"minimumRingSize":"2048"}}}}}`)
		return m.stage(traffic.Limits{HashEntries: limit})
	}
	for limit, hashed := range map[int]int{0: 8, -1: 8, 3 * 2 * 2048: 3, 1: 0} {
		s := build(limit)
		got, failed := s.ask(edge(), envoy.ClusterType), 0
		for i := range 8 {
			name := fmt.Sprintf("outbound|81||e%d.evil.example.com", i)
			cluster, _ := got.resources[name].(*clusterv3.Cluster)
			if got.failed[name] != "" {
				failed++
			}
			want := clusterv3.Cluster_LEAST_REQUEST
			if i < hashed {
				want = clusterv3.Cluster_RING_HASH
			}
			if cluster.GetLbPolicy() != want || cluster.GetCircuitBreakers().GetThresholds()[0].GetMaxConnections().GetValue() != 7 {
				t.Errorf("limit %d: cluster %d is %v", limit, i, cluster)
			}
		}
		reported := strings.Contains(s.reason("r", "spec.trafficPolicy"), fmt.Sprintf("to e%d.evil.example.com", hashed))
		if reported != (hashed < 8) || failed != min(1, 8-hashed) {
			t.Errorf("limit %d: reported %t, failed %q", limit, reported, got.failed)
		}
	}
}
