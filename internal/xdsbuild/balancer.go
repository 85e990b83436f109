// SPDX-License-Identifier: Apache-2.0

package xdsbuild

import (
	"math/big"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"
	networking "istio.io/api/networking/v1alpha3"
)

// minimumRingSize is Istio 1.30's default for a consistent hash without a ring or a table.
const minimumRingSize = 1024

// maxHashEntries is the maximum size of a ring and of a Maglev table: 48 MiB for each priority of
// each cluster. Envoy would build larger ones.
const maxHashEntries = 1 << 20

// defaultMaglev is the size of a Maglev table if the policy sets none.
const defaultMaglev = 65537

// maxSpread bounds the growth of a ring whose endpoints have very different weights, unless the
// policy asks for a larger ring.
const maxSpread = 1 << 16

// setBalancer sets the load balancing of an Envoy.
func (u *Upstream) setBalancer(c *clusterv3.Cluster) {
	lb := u.Policy.GetLoadBalancer()
	switch {
	case c.GetLbPolicy() == clusterv3.Cluster_CLUSTER_PROVIDED:
		return
	case lb.GetConsistentHash() != nil:
		setHash(c, lb.GetConsistentHash())
		boundRing(c)
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

// setBalancerForGRPC sets the load balancing of a gRPC client. The clients reject a cluster with
// other policies than these. Least request is sent only if the policy asks for it, because old
// clients do not support it.
func (u *Upstream) setBalancerForGRPC(c *clusterv3.Cluster) {
	switch lb := u.Policy.GetLoadBalancer(); {
	case c.GetLbPolicy() == clusterv3.Cluster_CLUSTER_PROVIDED:
	case lb.GetConsistentHash() != nil:
		if hash := lb.GetConsistentHash(); hash.GetMaglev() != nil {
			setHash(c, &networking.LoadBalancerSettings_ConsistentHashLB{})
		} else {
			setHash(c, hash)
		}
	case lb.GetSimple() == networking.LoadBalancerSettings_LEAST_REQUEST:
		c.LbPolicy = clusterv3.Cluster_LEAST_REQUEST
	}
}

// setHash sets a hash-based load balancer. The routes have the key of the hash.
func setHash(c *clusterv3.Cluster, hash *networking.LoadBalancerSettings_ConsistentHashLB) {
	if m := hash.GetMaglev(); m != nil {
		c.LbPolicy = clusterv3.Cluster_MAGLEV
		if n := m.GetTableSize(); isMaglevSize(n) {
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
			MinimumRingSize: wrapperspb.UInt64(min(size, maxHashEntries)),
		}}
	}
}

// isMaglevSize reports whether n is a valid size of a Maglev table. Envoy rejects sizes that are
// not prime.
func isMaglevSize(n uint64) bool {
	return n > 0 && n < maxHashEntries && new(big.Int).SetUint64(n).ProbablyPrime(0)
}

// boundRing bounds the size of a ring, because an Envoy enlarges a ring until the endpoint with the
// least weight is in it, up to 8 Mi entries.
func boundRing(c *clusterv3.Cluster) {
	if c.GetLbPolicy() != clusterv3.Cluster_RING_HASH {
		return
	}
	config := c.GetRingHashLbConfig()
	if config == nil {
		config = &clusterv3.Cluster_RingHashLbConfig{}
		c.LbConfig = &clusterv3.Cluster_RingHashLbConfig_{RingHashLbConfig: config}
	}
	config.MaximumRingSize = wrapperspb.UInt64(max(maxSpread, config.GetMinimumRingSize().GetValue()))
}

// HashEntries returns the number of entries of the rings or tables of a cluster with a setting,
// summed over all priorities of the setting. It is 0 without a consistent hash.
func HashEntries(lb *networking.LoadBalancerSettings) int {
	hash := lb.GetConsistentHash()
	if hash == nil {
		return 0
	}
	size := max(hash.GetMinimumRingSize(), hash.GetRingHash().GetMinimumRingSize(), minimumRingSize) //nolint:staticcheck // users still have it
	if m := hash.GetMaglev(); m != nil {
		if size = m.GetTableSize(); !isMaglevSize(size) {
			size = defaultMaglev
		}
	}
	return int(min(size, maxHashEntries)) * prioritiesOf(lb) //nolint:gosec // bounded
}

// prioritiesOf returns the maximum number of priorities of endpoints under a setting.
func prioritiesOf(lb *networking.LoadBalancerSettings) int {
	locality, zone := lb.GetLocalityLbSetting(), lb.GetZoneAwareLbSetting()
	labels := max(len(locality.GetFailoverPriority()), len(zone.GetFailoverPriority()))
	switch {
	case labels > 0:
		return min(labels+1, maxPriorities)
	case len(locality.GetFailover())+len(zone.GetFailover()) > 0:
		return ranksOfLocality
	default:
		return 1
	}
}

// setWarmup enables slow start for new endpoints.
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
