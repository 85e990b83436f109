// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"slices"

	"github.com/pilotkit/pilotkit/registry"
)

// SetNetworkGateways replaces the gateways of all networks. The slice remains the
// caller's; repetitions are dropped.
func (r *Registry) SetNetworkGateways(gateways []registry.NetworkGateway) {
	sorted := slices.Clone(gateways)
	slices.SortFunc(sorted, registry.CompareNetworkGateways)
	sorted = slices.Compact(sorted)
	// The edit below returns no error.
	_ = r.commit(func(s *state) (*state, change, error) {
		if slices.Equal(s.gateways, sorted) {
			return s, change{}, nil
		}
		next := s.clone()
		next.gateways = sorted
		return next, change{gateways: true}, nil
	})
}

// NetworkGateways returns the gateways, in the order of
// registry.CompareNetworkGateways.
func (r *Registry) NetworkGateways() []registry.NetworkGateway { return r.state.Load().gateways }
