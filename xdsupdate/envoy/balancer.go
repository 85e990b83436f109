// SPDX-License-Identifier: Apache-2.0

package envoy

import (
	"math/big"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"
	networking "istio.io/api/networking/v1alpha3"
)

// minimumRingSize is Istio 1.30's default for a consistent hash that names neither
// a ring nor a table.
const minimumRingSize = 1024

// maxHashEntries is the largest ring, and the largest Maglev table, that a client is
// asked to build: of 48 MiB, for each priority of each cluster. Envoy would build
// larger ones.
const maxHashEntries = 1 << 20

// defaultMaglev is the size of a table that nothing is said of.
const defaultMaglev = 65537

// maxSpread is how large a ring grows at most whose endpoints have very different
// weights, if no larger one is asked for.
const maxSpread = 1 << 16

// setBalancer sets how an Envoy chooses an endpoint.
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

// isMaglevSize reports whether a table can have a size; Envoy refuses what is not prime.
func isMaglevSize(n uint64) bool {
	return n > 0 && n < maxHashEntries && new(big.Int).SetUint64(n).ProbablyPrime(0)
}

// boundRing limits how large a ring grows: an Envoy enlarges it until the endpoint with
// the least weight is in it, up to 8 Mi entries.
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

// HashEntries returns how many entries the rings or tables of a cluster with a setting
// have, those of all priorities that the setting makes; 0 without a consistent hash.
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

// prioritiesOf returns how many priorities endpoints can have by a setting.
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
