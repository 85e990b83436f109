// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"slices"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/internal/publish"
)

// SetNetworkGateways replaces the gateways of all networks. The slice remains the caller's;
// duplicates are dropped.
func (r *Registry) SetNetworkGateways(gateways []registry.NetworkGateway) {
	sorted := slices.Clone(gateways)
	slices.SortFunc(sorted, registry.CompareNetworkGateways)
	sorted = slices.Compact(sorted)
	// The edit returns no error.
	_ = r.publisher.Commit(func(s *state) (*state, *publish.Change, error) {
		if slices.Equal(s.gateways, sorted) {
			return s, nil, nil
		}
		next := s.clone()
		next.gateways = sorted
		return next, &publish.Change{Gateways: true}, nil
	})
}

// NetworkGateways returns the gateways, in the order of registry.CompareNetworkGateways.
func (r *Registry) NetworkGateways() []registry.NetworkGateway { return r.publisher.State().gateways }
