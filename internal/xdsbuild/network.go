// SPDX-License-Identifier: Apache-2.0

package xdsbuild

import (
	"slices"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/pilotkit/pilotkit/internal/ipaddr"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// Networks has the gateways to the endpoints of other networks. It is immutable; nil has none.
type Networks struct {
	gateways map[networkKey][]registry.NetworkGateway
	// scale is the least common multiple of the numbers of gateways. Weights multiplied by it can
	// be divided among gateways without a remainder.
	scale uint64
}

// networkKey is a network as a whole, or the part of it in one cluster.
type networkKey struct {
	network string
	cluster registry.ClusterID
}

// maxScale bounds the scale. With more gateways, shares are rounded.
const maxScale = 1 << 16

// NewNetworks returns the networks of some gateways. It skips gateways without an IP address or a
// port for mutual TLS.
func NewNetworks(gateways []registry.NetworkGateway) *Networks {
	n := &Networks{gateways: make(map[networkKey][]registry.NetworkGateway), scale: 1}
	for _, g := range slices.SortedFunc(slices.Values(gateways), registry.CompareNetworkGateways) {
		if g.Network == "" || g.Port == 0 || g.Port > maxPort || !ip(g.Addr) {
			continue
		}
		g.Addr = ipaddr.Canonical(g.Addr)
		keys := []networkKey{{network: g.Network}}
		if g.Cluster != "" {
			keys = append(keys, networkKey{g.Network, g.Cluster})
		}
		for _, k := range keys {
			n.add(k, g)
		}
	}
	for _, list := range n.gateways {
		if next := lcm(n.scale, uint64(len(list))); next <= maxScale {
			n.scale = next
		}
	}
	return n
}

// add adds a gateway, unless one with the same address exists.
func (n *Networks) add(k networkKey, g registry.NetworkGateway) {
	known := func(o registry.NetworkGateway) bool { return o.Addr == g.Addr && o.Port == g.Port }
	if !slices.ContainsFunc(n.gateways[k], known) {
		n.gateways[k] = append(n.gateways[k], g)
	}
}

func lcm(a, b uint64) uint64 {
	x, y := a, b
	for y != 0 {
		x, y = y, x%y
	}
	return a / x * b
}

// of returns the gateways for an endpoint: the gateways of its network in its cluster, or else all
// gateways of its network. Without any the endpoint is reached directly.
func (n *Networks) of(a *registry.EndpointAttributes) []registry.NetworkGateway {
	if n == nil || a.Network == "" {
		return nil
	}
	if own := n.gateways[networkKey{a.Network, a.ClusterID}]; len(own) > 0 {
		return own
	}
	return n.gateways[networkKey{network: a.Network}]
}

// throughGateways replaces endpoints in other networks by the gateways of these networks. A gateway
// has the weights of the endpoints that it replaces. Remote endpoints that do not accept mutual TLS
// are dropped, because a gateway forwards only mutual TLS.
func (u *Upstream) throughGateways(entries []entry) []entry {
	if u.Networks == nil || len(u.Networks.gateways) == 0 {
		return entries
	}
	type gatewayKey struct {
		address  string
		port     uint32
		locality localityKey
		rank     int
	}
	at := make(map[gatewayKey]int)
	var out, remote []entry
	for _, m := range entries {
		a := m.endpoint.Attributes()
		gateways := u.Networks.of(a)
		if a.Network == u.Proxy.Network || len(gateways) == 0 {
			m.weight *= u.Networks.scale
			if m.lb.GetLoadBalancingWeight() == nil {
				m.lb.LoadBalancingWeight = wrapperspb.UInt32(1)
			}
			out = append(out, m)
			continue
		}
		if !u.mutualTLS(m.endpoint) {
			continue
		}
		for _, g := range gateways {
			k := gatewayKey{g.Addr, g.Port, m.locality, m.rank}
			if u.Client == envoy.ForGRPC {
				k = gatewayKey{address: g.Addr, port: g.Port} // gRPC clients reject an assignment with duplicate addresses
			}
			i, have := at[k]
			if !have {
				i = len(remote)
				at[k] = i
				remote = append(remote, entry{endpoint: m.endpoint, lb: gatewayEndpoint(g), locality: m.locality, rank: m.rank})
			}
			if m.rank < remote[i].rank {
				remote[i].locality, remote[i].rank = m.locality, m.rank
			}
			remote[i].weight += max(1, m.weight*u.Networks.scale/uint64(len(gateways)))
		}
	}
	return append(out, remote...)
}

// gatewayEndpoint returns a gateway as an endpoint, which accepts only mutual TLS.
func gatewayEndpoint(g registry.NetworkGateway) *endpointv3.LbEndpoint {
	return &endpointv3.LbEndpoint{
		HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: &endpointv3.Endpoint{Address: socketAddress(g.Addr, g.Port)}},
		Metadata: &core.Metadata{FilterMetadata: map[string]*structpb.Struct{
			socketMatch: stringStruct("tlsMode", tlsModeIstio),
		}},
		LoadBalancingWeight: wrapperspb.UInt32(1),
	}
}
