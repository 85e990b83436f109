// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/registry"
)

// sidecar is a Sidecar. It is immutable.
type sidecar struct {
	stored
	spec *networking.Sidecar
	// selector selects the workloads that the Sidecar applies to. Nil selects all.
	selector registry.Labels
}

// selective reports whether the Sidecar has a workload selector.
func (s *sidecar) selective() bool { return len(s.selector) > 0 }

// compareSelective is the order of lookup of Sidecars and of DestinationRules: objects with a
// workload selector come first, and then older ones.
func compareSelective[T interface {
	object
	selective() bool
}](a, b T) int {
	if a.selective() != b.selective() {
		if a.selective() {
			return -1
		}
		return 1
	}
	return compareObjects(a, b)
}
