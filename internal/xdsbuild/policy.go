// SPDX-License-Identifier: Apache-2.0

package xdsbuild

import (
	"cmp"

	meshconfig "istio.io/api/mesh/v1alpha1"
	networking "istio.io/api/networking/v1alpha3"
)

// TrafficPolicy returns the effective policy of a port of a service, or of a subset, from the
// levels of a DestinationRule; nil if no level sets anything. Its PortLevelSettings are empty.
// Rule, subset and mesh may be nil.
//
// The rule's port level settings for the port replace the rule's policy as a whole. The connection
// pool and outlier detection of the mesh's default policy fill parts that are unset then. The
// subset overrides single parts. The subset's port level settings for the port replace the
// connection pool, outlier detection, load balancer and TLS, including the ones that they do not
// set.
func TrafficPolicy(
	rule *networking.TrafficPolicy, port uint32, subset *networking.TrafficPolicy, mesh *meshconfig.MeshConfig,
) *networking.TrafficPolicy {
	base := rule
	if at := portSettings(rule, port); at != nil {
		base = policyOfPort(at)
	}
	out := &networking.TrafficPolicy{}
	overridePolicy(out, base)
	if out.ConnectionPool == nil {
		out.ConnectionPool = mesh.GetDefaultTrafficPolicy().GetConnectionPool()
	}
	if out.OutlierDetection == nil {
		out.OutlierDetection = mesh.GetDefaultTrafficPolicy().GetOutlierDetection()
	}
	overridePolicy(out, subset)
	if at := portSettings(subset, port); at != nil {
		own := policyOfPort(at)
		out.ConnectionPool, out.OutlierDetection = own.GetConnectionPool(), own.GetOutlierDetection()
		out.LoadBalancer, out.Tls = own.GetLoadBalancer(), own.GetTls()
	}
	if emptyPolicy(out) {
		return nil
	}
	return out
}

// ConsistentHash returns the consistent hash whose key the routes to a destination need, or nil.
// The most specific level that sets a hash wins, from the subset's port level settings to the
// rule's policy. Unlike in TrafficPolicy, levels without a hash are skipped. Rule and subset may be
// nil.
func ConsistentHash(rule *networking.TrafficPolicy, port uint32, subset *networking.TrafficPolicy) *networking.LoadBalancerSettings_ConsistentHashLB {
	for _, lb := range []*networking.LoadBalancerSettings{
		portSettings(subset, port).GetLoadBalancer(), subset.GetLoadBalancer(),
		portSettings(rule, port).GetLoadBalancer(), rule.GetLoadBalancer(),
	} {
		if hash := lb.GetConsistentHash(); hash != nil {
			return hash
		}
	}
	return nil
}

// overridePolicy overrides the parts of out that with sets.
func overridePolicy(out, with *networking.TrafficPolicy) {
	out.ConnectionPool = cmp.Or(with.GetConnectionPool(), out.ConnectionPool)
	out.OutlierDetection = cmp.Or(with.GetOutlierDetection(), out.OutlierDetection)
	out.LoadBalancer = cmp.Or(with.GetLoadBalancer(), out.LoadBalancer)
	out.Tls = cmp.Or(with.GetTls(), out.Tls)
	out.Tunnel = cmp.Or(with.GetTunnel(), out.Tunnel)
	out.ProxyProtocol = cmp.Or(with.GetProxyProtocol(), out.ProxyProtocol)
	out.RetryBudget = cmp.Or(with.GetRetryBudget(), out.RetryBudget)
}

// portSettings returns the first port level settings for a port, or nil.
func portSettings(policy *networking.TrafficPolicy, port uint32) *networking.TrafficPolicy_PortTrafficPolicy {
	for _, p := range policy.GetPortLevelSettings() {
		if p.GetPort() != nil && p.GetPort().GetNumber() == port {
			return p
		}
	}
	return nil
}

func policyOfPort(p *networking.TrafficPolicy_PortTrafficPolicy) *networking.TrafficPolicy {
	return &networking.TrafficPolicy{
		ConnectionPool: p.GetConnectionPool(), OutlierDetection: p.GetOutlierDetection(),
		LoadBalancer: p.GetLoadBalancer(), Tls: p.GetTls(),
	}
}

func emptyPolicy(p *networking.TrafficPolicy) bool {
	return p.GetConnectionPool() == nil && p.GetOutlierDetection() == nil && p.GetLoadBalancer() == nil && p.GetTls() == nil &&
		p.GetTunnel() == nil && p.GetProxyProtocol() == nil && p.GetRetryBudget() == nil
}
