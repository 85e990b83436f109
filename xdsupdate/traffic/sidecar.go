// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/registry"
)

// sidecar is a Sidecar. It is immutable.
type sidecar struct {
	objectName
	config *configstore.Config
	spec   *networking.Sidecar
	// selector selects the workloads that the Sidecar applies to. Nil selects all.
	selector registry.Labels
}

func newSidecar(c *configstore.Config) *sidecar {
	spec, _ := c.Spec.(*networking.Sidecar)
	if spec == nil {
		return nil
	}
	return &sidecar{
		objectName: objectName{c.Namespace, c.Name}, config: c, spec: spec,
		selector: spec.GetWorkloadSelector().GetLabels(),
	}
}

// selective reports whether the Sidecar has a workload selector.
func (s *sidecar) selective() bool { return len(s.selector) > 0 }

// compareSidecars is the order of lookup: Sidecars with a workload selector come first, and then
// older ones.
func compareSidecars(a, b *sidecar) int {
	if a.selective() != b.selective() {
		if a.selective() {
			return -1
		}
		return 1
	}
	return compareConfigs(a.config, b.config)
}
