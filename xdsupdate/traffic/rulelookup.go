// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/internal/xdsbuild"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
)

// ruleStep is the lookup step that found a rule.
type ruleStep uint8

// The steps of the lookup, in order.
const (
	noRule ruleStep = iota
	clientNamespace
	serviceNamespace
	rootNamespace
)

// String returns the step in words.
func (s ruleStep) String() string {
	switch s {
	case clientNamespace:
		return "the client's namespace"
	case serviceNamespace:
		return "the service's namespace"
	case rootNamespace:
		return "the root namespace"
	default:
		return "none"
	}
}

// ruleOf returns the DestinationRule for a host as a proxy sees it, and the lookup step that found
// it. The namespace is that of the host's service, or "" without a service. The result is nil if
// there is no rule.
//
// If the client's namespace has a rule for the host, the most specific one decides, even if it is
// for other workloads than the proxy. In this case the proxy has no rule (Istio 1.30).
func (x *index) ruleOf(p *proxy, host registry.Hostname, namespace string) (*rule, ruleStep) {
	host = lower(host)
	root := x.settings.rootNamespace()
	own := func(r *destinationRule) bool {
		// In the root namespace, rules that other namespaces see, too, belong to the last step.
		return r.visibility.in(p.namespace) && (p.namespace != root || r.visibility.equal(private(root)))
	}
	if found := x.rules.find(p.namespace, host, own); found != nil {
		return chooseRule(found, p.namespace, p.labels), clientNamespace
	}
	exported := func(r *destinationRule) bool { return !r.visibility.equal(private(r.namespace)) }
	for _, at := range []struct {
		namespace string
		step      ruleStep
	}{{namespace, serviceNamespace}, {root, rootNamespace}} {
		if at.namespace == "" {
			continue
		}
		if m := chooseRule(x.rules.find(at.namespace, host, exported), p.namespace, p.labels); m != nil {
			return m, at.step
		}
	}
	return nil, noRule
}

// ruleFor is ruleOf for a destination. Its service may be nil.
func (x *index) ruleFor(p *proxy, host registry.Hostname, svc *service) *rule {
	namespace := ""
	if svc != nil {
		host, namespace = svc.host, svc.namespace
	}
	m, _ := x.ruleOf(p, host, namespace)
	return m
}

// policyOf returns the traffic policy of a destination, or nil. An unknown subset has the policy of
// the service.
func (x *index) policyOf(p *proxy, host registry.Hostname, svc *service, port uint32, subset string) *networking.TrafficPolicy {
	m := x.ruleFor(p, host, svc)
	return xdsbuild.TrafficPolicy(m.trafficPolicy(), port, m.subset(subset).GetTrafficPolicy(), x.settings.mesh)
}

// hashOf returns the consistent hash of a destination, whose key its routes need, or nil if there is
// none, or its DestinationRule is left out.
func (x *index) hashOf(
	p *proxy, host registry.Hostname, svc *service, port uint32, subset string,
) *networking.LoadBalancerSettings_ConsistentHashLB {
	m := x.ruleFor(p, host, svc)
	hash := xdsbuild.ConsistentHash(m.trafficPolicy(), port, m.subset(subset).GetTrafficPolicy())
	if hash != nil && p.leaving != nil {
		if by, _ := m.owner(m.subset(subset)); p.leaves(by.config, by) != ads.Included {
			return nil
		}
	}
	return hash
}
