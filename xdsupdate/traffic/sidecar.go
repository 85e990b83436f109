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
	// selector has the labels of the workloads that it is for; nil: all.
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

// selective reports whether it is for some workloads of its namespace only.
func (s *sidecar) selective() bool { return len(s.selector) > 0 }

// compareSidecars is the order in which Sidecars are looked at: those with a
// workload selector first.
func compareSidecars(a, b *sidecar) int {
	if a.selective() != b.selective() {
		if a.selective() {
			return -1
		}
		return 1
	}
	return compareConfigs(a.config, b.config)
}
