// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"maps"
	"slices"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/registry"
)

// UnixScheme is the prefix of a bind to a unix socket.
const UnixScheme = "unix://"

// Sidecar is a Sidecar. It is immutable.
type Sidecar struct {
	Stored
	Spec *networking.Sidecar
	// Selector selects the workloads that the Sidecar applies to. Without labels it selects all.
	Selector registry.Labels
}

// Selective reports whether the Sidecar has a workload selector, which may be empty (Istio 1.30).
func (s *Sidecar) Selective() bool { return s.Spec.GetWorkloadSelector() != nil }

// compareSelective is the order of lookup of Sidecars and of DestinationRules: objects with a
// workload selector come first, and then older ones.
func compareSelective[T interface {
	Object
	Selective() bool
}](a, b T) int {
	if a.Selective() != b.Selective() {
		if a.Selective() {
			return -1
		}
		return 1
	}
	return Compare(a, b)
}

// Listeners returns the egress listeners. A nil listener stands for everything visible.
func (s *Sidecar) Listeners() []*networking.IstioEgressListener {
	if s == nil || len(s.Spec.GetEgress()) == 0 {
		return []*networking.IstioEgressListener{nil}
	}
	return s.Spec.GetEgress()
}

func (s *Sidecar) labelKeys() []string { return slices.Collect(maps.Keys(s.Selector)) }
