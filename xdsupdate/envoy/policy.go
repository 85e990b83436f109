// SPDX-License-Identifier: Apache-2.0

package envoy

import (
	meshconfig "istio.io/api/mesh/v1alpha1"
	networking "istio.io/api/networking/v1alpha3"
)

// TrafficPolicy returns the policy that holds for a port of a service, or for a
// subset of it, by the levels of a DestinationRule; nil if nothing is set. Its
// PortLevelSettings are empty. Rule, subset and mesh may be nil.
//
// The port level settings of the rule for the port take the place of the rule's
// policy as a whole. The connection pool and outlier detection of the mesh's default
// policy fill in what is then unset. The subset overrides part by part; its port
// level settings for the port replace the connection pool, outlier detection, load
// balancer and TLS, those that they do not set included.
func TrafficPolicy(
	rule *networking.TrafficPolicy, port uint32, subset *networking.TrafficPolicy, mesh *meshconfig.MeshConfig,
) *networking.TrafficPolicy {
	base := rule
	if at := portSettings(rule, port); at != nil {
		base = policyOfPort(at)
	}
	out := &networking.TrafficPolicy{
		ConnectionPool:   base.GetConnectionPool(),
		OutlierDetection: base.GetOutlierDetection(),
		LoadBalancer:     base.GetLoadBalancer(),
		Tls:              base.GetTls(),
		Tunnel:           base.GetTunnel(),
		ProxyProtocol:    base.GetProxyProtocol(),
		RetryBudget:      base.GetRetryBudget(),
	}
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

// ConsistentHash returns the consistent hash whose key the routes to a destination
// need, or nil: of the most specific level that sets any, from the subset's
// settings of the port to the rule's policy. Unlike in TrafficPolicy a level that
// sets none is passed over. Rule and subset may be nil.
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

// overridePolicy sets the parts that a policy sets.
func overridePolicy(out, with *networking.TrafficPolicy) {
	if with.GetConnectionPool() != nil {
		out.ConnectionPool = with.GetConnectionPool()
	}
	if with.GetOutlierDetection() != nil {
		out.OutlierDetection = with.GetOutlierDetection()
	}
	if with.GetLoadBalancer() != nil {
		out.LoadBalancer = with.GetLoadBalancer()
	}
	if with.GetTls() != nil {
		out.Tls = with.GetTls()
	}
	if with.GetTunnel() != nil {
		out.Tunnel = with.GetTunnel()
	}
	if with.GetProxyProtocol() != nil {
		out.ProxyProtocol = with.GetProxyProtocol()
	}
	if with.GetRetryBudget() != nil {
		out.RetryBudget = with.GetRetryBudget()
	}
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
