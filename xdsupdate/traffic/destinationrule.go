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
	return r
}

// selective reports whether the rule has a workload selector.
func (r *destinationRule) selective() bool { return r.spec.GetWorkloadSelector() != nil }

// ofPolicies reports whether the rule was generated from BackendTLSPolicies.
func (r *destinationRule) ofPolicies() bool { return standsForPolicies(r.config) }

// passesThrough reports whether some policy of the rule has the load balancing PASSTHROUGH, which
// forwards connections to their original destination.
func (r *destinationRule) passesThrough() bool {
	passes := func(p interface {
		GetLoadBalancer() *networking.LoadBalancerSettings
	},
	) bool {
		return p.GetLoadBalancer().GetSimple() == networking.LoadBalancerSettings_PASSTHROUGH
	}
	policies := []*networking.TrafficPolicy{r.spec.GetTrafficPolicy()}
	for _, s := range r.spec.GetSubsets() {
		policies = append(policies, s.GetTrafficPolicy())
	}
	for _, p := range policies {
		for _, settings := range p.GetPortLevelSettings() {
			if passes(settings) {
				return true
			}
		}
		if passes(p) {
			return true
		}
	}
	return false
}
