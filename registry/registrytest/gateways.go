// SPDX-License-Identifier: Apache-2.0

package registrytest

import (
	"slices"

	"go.uber.org/atomic"

	"github.com/pilotkit/pilotkit/registry"
)

func gatewayChecks() []check {
	return []check{
		{
			Name: "Gateways/Read", Source: sourceDiscovery,
			Promise: "NetworkGateways returns the gateways of all networks in the order of CompareNetworkGateways",
			Skip:    noGateways, Run: gatewaysRead,
		},
		{
			Name: "Gateways/Handler", Source: sourceDiscovery,
			Promise: "gateway handlers are called after the gateways have changed, and only then",
			Skip:    noGateways, Run: gatewaysHandler,
		},
	}
}

func noGateways(s *suite) string {
	if s.subject.SetGateways == nil {
		return "the registry has no network gateways"
	}
	return ""
}

func gateway(network, address string) registry.NetworkGateway {
	return registry.NetworkGateway{Network: network, Cluster: "east", Addr: address, Port: 15443}
}

func (s *suite) setGateways(gateways ...registry.NetworkGateway) {
	s.subject.SetGateways(gateways)
	s.catchUp()
}

func gatewaysRead(s *suite) {
	other := gateway("n1", "2.2.2.2")
	other.ServiceAccount = "spiffe://other"
	s.setGateways(gateway("n2", "1.1.1.1"), other, gateway("n1", "2.2.2.2"), gateway("n1", "1.1.1.1"))
	want := []registry.NetworkGateway{gateway("n1", "1.1.1.1"), gateway("n1", "2.2.2.2"), other, gateway("n2", "1.1.1.1")}
	if got := s.reg.NetworkGateways(); !slices.Equal(got, want) {
		s.Broken("NetworkGateways() = %v, want %v", got, want)
	}
	s.setGateways()
	if got := s.reg.NetworkGateways(); len(got) != 0 {
		s.Broken("NetworkGateways() = %v, want none", got)
	}
}

func gatewaysHandler(s *suite) {
	var calls, seen atomic.Int64
	s.reg.AppendNetworkGatewayHandler(func() {
		calls.Inc()
		seen.Store(int64(len(s.reg.NetworkGateways())))
	})
	s.catchUp()
	calls.Store(0)
	s.setGateways(gateway("n1", "1.1.1.1"))
	if calls.Load() != 1 || seen.Load() != 1 {
		s.Broken("%d calls, the last of which saw %d gateways; want 1 and 1", calls.Load(), seen.Load())
	}
	s.setGateways(gateway("n1", "1.1.1.1"))
	s.set(shop())
	if calls.Load() != 1 {
		s.Broken("%d calls although nothing changed", calls.Load()-1)
	}
}
