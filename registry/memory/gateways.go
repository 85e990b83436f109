// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"cmp"
	"slices"
	"strings"

	"github.com/pilotkit/pilotkit/registry"
)

// SetNetworkGateways replaces the gateways of all networks. The slice remains the
// caller's; repetitions are dropped.
func (r *Registry) SetNetworkGateways(gateways []registry.NetworkGateway) {
	sorted := slices.Clone(gateways)
	slices.SortFunc(sorted, compareGateways)
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

// NetworkGateways returns the gateways, sorted by network, cluster, address and
// ports.
func (r *Registry) NetworkGateways() []registry.NetworkGateway { return r.state.Load().gateways }

func compareGateways(g, h registry.NetworkGateway) int {
	return cmp.Or(
		strings.Compare(g.Network, h.Network),
		strings.Compare(string(g.Cluster), string(h.Cluster)),
		strings.Compare(g.Addr, h.Addr),
		cmp.Compare(g.Port, h.Port),
		cmp.Compare(g.HBONEPort, h.HBONEPort),
		strings.Compare(g.ServiceAccount, h.ServiceAccount),
	)
}
