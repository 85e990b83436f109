// SPDX-License-Identifier: Apache-2.0

package envoy

import (
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"
	networking "istio.io/api/networking/v1alpha3"
)

// minimumRingSize is Istio 1.30's default for a consistent hash that names neither
// a ring nor a table.
const minimumRingSize = 1024

// maxMaglev is the largest table that Envoy builds.
const maxMaglev = 5000011

// maxRingSize is the largest ring that Envoy builds.
const maxRingSize = 8 << 20

// setBalancer sets how an Envoy chooses an endpoint.
func (u *Upstream) setBalancer(c *clusterv3.Cluster) {
	lb := u.Policy.GetLoadBalancer()
	switch {
	case c.GetLbPolicy() == clusterv3.Cluster_CLUSTER_PROVIDED:
		return
	case lb.GetConsistentHash() != nil:
		setHash(c, lb.GetConsistentHash())
	case lb.GetSimple() == networking.LoadBalancerSettings_ROUND_ROBIN:
		c.LbPolicy = clusterv3.Cluster_ROUND_ROBIN
	case lb.GetSimple() == networking.LoadBalancerSettings_RANDOM:
		c.LbPolicy = clusterv3.Cluster_RANDOM
	default: // also the deprecated LEAST_CONN
		c.LbPolicy = clusterv3.Cluster_LEAST_REQUEST
	}
	setWarmup(c, lb)
	u.setLocality(c)
}

// setBalancerForGRPC sets how a gRPC client chooses an endpoint. The clients refuse
// a cluster with other policies than these; least request is sent to those only
// that it was asked for, because old clients do not know it.
func (u *Upstream) setBalancerForGRPC(c *clusterv3.Cluster) {
	switch lb := u.Policy.GetLoadBalancer(); {
	case c.GetLbPolicy() == clusterv3.Cluster_CLUSTER_PROVIDED:
	case lb.GetConsistentHash() != nil:
		if hash := lb.GetConsistentHash(); hash.GetMaglev() != nil {
			setHash(c, &networking.LoadBalancerSettings_ConsistentHashLB{})
		} else {
			setHash(c, hash)
		}
	case lb.GetSimple() == networking.LoadBalancerSettings_LEAST_REQUEST, lb.GetSimple() == leastConn:
		c.LbPolicy = clusterv3.Cluster_LEAST_REQUEST
	}
}

const leastConn = networking.LoadBalancerSettings_LEAST_CONN //nolint:staticcheck // users still have it

// setHash makes the cluster choose by a hash, whose key is the routes' matter.
func setHash(c *clusterv3.Cluster, hash *networking.LoadBalancerSettings_ConsistentHashLB) {
	if m := hash.GetMaglev(); m != nil {
		c.LbPolicy = clusterv3.Cluster_MAGLEV
		if n := m.GetTableSize(); n > 0 && n <= maxMaglev { // Envoy refuses more
			c.LbConfig = &clusterv3.Cluster_MaglevLbConfig_{MaglevLbConfig: &clusterv3.Cluster_MaglevLbConfig{
				TableSize: wrapperspb.UInt64(m.GetTableSize()),
			}}
		}
		return
	}
	c.LbPolicy = clusterv3.Cluster_RING_HASH
	size := hash.GetMinimumRingSize() //nolint:staticcheck // users still have it
	switch ring := hash.GetRingHash(); {
	case ring != nil:
		size = ring.GetMinimumRingSize()
	case size == 0:
		size = minimumRingSize
	}
	if size > 0 {
		c.LbConfig = &clusterv3.Cluster_RingHashLbConfig_{RingHashLbConfig: &clusterv3.Cluster_RingHashLbConfig{
			MinimumRingSize: wrapperspb.UInt64(min(size, maxRingSize)),
		}}
	}
}

// setWarmup makes new endpoints get their share slowly.
func setWarmup(c *clusterv3.Cluster, lb *networking.LoadBalancerSettings) {
	slow := slowStart(lb)
	if slow == nil {
		return
	}
	switch c.GetLbPolicy() {
	case clusterv3.Cluster_ROUND_ROBIN:
		c.LbConfig = &clusterv3.Cluster_RoundRobinLbConfig_{RoundRobinLbConfig: &clusterv3.Cluster_RoundRobinLbConfig{
			SlowStartConfig: slow,
		}}
	case clusterv3.Cluster_LEAST_REQUEST:
		c.LbConfig = &clusterv3.Cluster_LeastRequestLbConfig_{LeastRequestLbConfig: &clusterv3.Cluster_LeastRequestLbConfig{
			SlowStartConfig: slow,
		}}
	default:
	}
}

func slowStart(lb *networking.LoadBalancerSettings) *clusterv3.Cluster_SlowStartConfig {
	window := lb.GetWarmupDurationSecs()
	w := lb.GetWarmup()
	if w == nil {
		if window == nil {
			return nil
		}
		return &clusterv3.Cluster_SlowStartConfig{SlowStartWindow: duration(window)}
	}
	aggression, least := 1.0, 10.0
	if w.GetAggression() != nil {
		aggression = w.GetAggression().GetValue()
	}
	if w.GetMinimumPercent() != nil {
		least = w.GetMinimumPercent().GetValue()
	}
	return &clusterv3.Cluster_SlowStartConfig{
		SlowStartWindow:  duration(w.GetDuration()),
		Aggression:       &core.RuntimeDouble{DefaultValue: aggression, RuntimeKey: "slow_start.aggression"},
		MinWeightPercent: boundedPercent(least),
	}
}

// setLocality makes Envoy use the weights of localities, or prefer its own zone.
func (u *Upstream) setLocality(c *clusterv3.Cluster) {
	setting := u.locality()
	switch {
	case setting.zoneAware:
		c.CommonLbConfig.LocalityConfigSpecifier = &clusterv3.Cluster_CommonLbConfig_ZoneAwareLbConfig_{
			ZoneAwareLbConfig: &clusterv3.Cluster_CommonLbConfig_ZoneAwareLbConfig{},
		}
	case setting.weighted():
		c.CommonLbConfig.LocalityConfigSpecifier = &clusterv3.Cluster_CommonLbConfig_LocalityWeightedLbConfig_{
			LocalityWeightedLbConfig: &clusterv3.Cluster_CommonLbConfig_LocalityWeightedLbConfig{},
		}
	}
}
