// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"fmt"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/registry"
)

// destinationRule is a DestinationRule with its names resolved. It is immutable.
type destinationRule struct {
	stored
	spec *networking.DestinationRule
	host registry.Hostname
	// selector selects the client workloads that the rule applies to. Nil selects all.
	selector   registry.Labels
	visibility visibility
	// alike is equal for rules with the same workload selector and visibility.
	alike string
	// hashes and passes are set if some load balancer has a consistent hash, or is PASSTHROUGH.
	hashes, passes bool
}

func newDestinationRule(c *configstore.Config, spec *networking.DestinationRule, s *settings) *destinationRule {
	r := &destinationRule{
		stored: newStored(c), spec: namingServers(c, spec),
		host:       resolveHost(spec.GetHost(), c.Namespace, s.domain),
		selector:   spec.GetWorkloadSelector().GetMatchLabels(),
		visibility: newVisibility(spec.GetExportTo(), s.mesh.GetDefaultDestinationRuleExportTo(), c.Namespace),
	}
	if spec.GetWorkloadSelector() != nil {
		r.visibility = private(c.Namespace)
	}
	r.alike = fmt.Sprintf("%t %s %s", r.selective(), r.visibility.key(), joinLabels(r.selector))
	for _, p := range r.policies() {
		r.hashes = r.hashes || p.GetLoadBalancer().GetConsistentHash() != nil
		r.passes = r.passes || passesThrough(p.GetLoadBalancer())
	}
	return r
}

// selective reports whether the rule has a workload selector.
func (r *destinationRule) selective() bool { return r.spec.GetWorkloadSelector() != nil }

// ofPolicies reports whether the rule was generated from BackendTLSPolicies.
func (r *destinationRule) ofPolicies() bool { return standsForPolicies(r.config) }

// policyAt is a traffic policy, or its settings for a port, with its field.
type policyAt struct {
	field string
	policyLevel
}

type policyLevel interface {
	GetLoadBalancer() *networking.LoadBalancerSettings
	GetTls() *networking.ClientTLSSettings
}

// policies returns the policies of the rule and of its subsets, each followed by its settings for
// ports.
func (r *destinationRule) policies() (out []policyAt) {
	add := func(field string, p *networking.TrafficPolicy) {
		if p == nil {
			return
		}
		out = append(out, policyAt{field, p})
		for i, port := range p.GetPortLevelSettings() {
			out = append(out, policyAt{element(field+".portLevelSettings", i), port})
		}
	}
	add("spec.trafficPolicy", r.spec.GetTrafficPolicy())
	for i, s := range r.spec.GetSubsets() {
		add(element("spec.subsets", i)+".trafficPolicy", s.GetTrafficPolicy())
	}
	return out
}

// passesThrough reports whether a load balancer is PASSTHROUGH, which forwards connections to their
// original destination.
func passesThrough(b *networking.LoadBalancerSettings) bool {
	return b.GetSimple() == networking.LoadBalancerSettings_PASSTHROUGH
}
