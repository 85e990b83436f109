// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// ruleStep says where a rule was found.
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

// ruleOf returns the DestinationRule for a host, whose service is in a namespace
// ("" if there is none), as a proxy sees it, and by which step it was found; nil for
// none.
//
// The first namespace with a rule for the host decides, by its most specific rule,
// even if that is for other workloads or namespaces than the proxy's: then there is
// no rule (Istio 1.30).
func (x *index) ruleOf(p *proxy, host registry.Hostname, namespace string) (*rule, ruleStep) {
	host = lower(host)
	root := x.settings.rootNamespace()
	own := func(r *destinationRule) bool {
		// In the root namespace, what others see, too, comes last.
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

// ruleFor is ruleOf for a destination, whose service may be nil if there is none.
func (x *index) ruleFor(p *proxy, host registry.Hostname, svc *service) *rule {
	namespace := ""
	if svc != nil {
		host, namespace = svc.host, svc.namespace
	}
	m, _ := x.ruleOf(p, host, namespace)
	return m
}

// policyOf returns the traffic policy that holds for a destination; nil for none. An
// unknown subset has the policy of the service.
func (x *index) policyOf(p *proxy, host registry.Hostname, svc *service, port uint32, subset string) *networking.TrafficPolicy {
	m := x.ruleFor(p, host, svc)
	return envoy.TrafficPolicy(m.trafficPolicy(), port, m.subset(subset).GetTrafficPolicy(), x.settings.mesh)
}

// hashOf returns the consistent hash whose key routes to a destination need, or nil.
func (x *index) hashOf(
	p *proxy, host registry.Hostname, svc *service, port uint32, subset string,
) *networking.LoadBalancerSettings_ConsistentHashLB {
	m := x.ruleFor(p, host, svc)
	return envoy.ConsistentHash(m.trafficPolicy(), port, m.subset(subset).GetTrafficPolicy())
}
