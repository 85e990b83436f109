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
	objectName
	config *configstore.Config
	spec   *networking.DestinationRule
	host   registry.Hostname
	// selector has the labels of the workloads that it is for; nil: all.
	selector   registry.Labels
	visibility visibility
	// alike is equal for rules that are for the same workloads and namespaces.
	alike string
}

func newDestinationRule(c *configstore.Config, s *settings) *destinationRule {
	spec, _ := c.Spec.(*networking.DestinationRule)
	if spec == nil {
		return nil
	}
	r := &destinationRule{
		objectName: objectName{c.Namespace, c.Name}, config: c, spec: namingServers(c, spec),
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

// selective reports whether it is for some workloads of its namespace only.
func (r *destinationRule) selective() bool { return r.spec.GetWorkloadSelector() != nil }

// ofPolicies reports whether it was made of BackendTLSPolicies.
func (r *destinationRule) ofPolicies() bool { return standsForPolicies(r.config) }

// passesThrough reports whether some policy of the rule sends connections to where
// clients wanted to go.
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

// compareRules is the order in which rules are looked at: those with a workload
// selector first.
func compareRules(a, b *destinationRule) int {
	if a.selective() != b.selective() {
		if a.selective() {
			return -1
		}
		return 1
	}
	return compareConfigs(a.config, b.config)
}
