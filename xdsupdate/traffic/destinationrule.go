// SPDX-License-Identifier: Apache-2.0

package traffic

import (
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
}

func newDestinationRule(c *configstore.Config, s *settings) *destinationRule {
	spec, _ := c.Spec.(*networking.DestinationRule)
	if spec == nil {
		return nil
	}
	r := &destinationRule{
		objectName: objectName{c.Namespace, c.Name}, config: c, spec: spec,
		host:       resolveHost(spec.GetHost(), c.Namespace, s.domain()),
		selector:   spec.GetWorkloadSelector().GetMatchLabels(),
		visibility: newVisibility(spec.GetExportTo(), s.mesh.GetDefaultDestinationRuleExportTo(), c.Namespace),
	}
	if spec.GetWorkloadSelector() != nil {
		r.visibility = private(c.Namespace)
	}
	return r
}

// selective reports whether it is for some workloads of its namespace only.
func (r *destinationRule) selective() bool { return r.spec.GetWorkloadSelector() != nil }

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
