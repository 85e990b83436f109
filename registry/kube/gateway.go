// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"slices"
	"strconv"

	"github.com/pilotkit/pilotkit/internal/topo"
	"github.com/pilotkit/pilotkit/registry"
)

// mayBeGateway reports whether a service is a gateway between networks if it has external
// addresses.
func (e *engine) mayBeGateway(h *host) bool {
	return h.object.labels[topo.Network] != "" || len(e.mesh.gateways[h.hostname]) > 0
}

// computeGateways recomputes the list of gateways.
func (e *engine) computeGateways() {
	var out []registry.NetworkGateway
	for h := range e.gatewayHosts {
		if h.view != nil {
			out = append(out, e.gatewaysOf(h)...)
		}
	}
	slices.SortFunc(out, registry.CompareNetworkGateways)
	out = slices.Compact(out)
	if !slices.Equal(out, e.gateways) {
		e.gateways = out
		e.batch.gatewaysChanged = true
	}
}

// gatewaysOf returns the gateways of a service: one for each of its gateway ports and each of its
// external addresses.
func (e *engine) gatewaysOf(h *host) []registry.NetworkGateway {
	var out []registry.NetworkGateway
	attributes := &h.view.service.Attributes
	ports := attributes.Kubernetes.ExternalPorts[e.options.ClusterID]
	for _, address := range attributes.ClusterExternalAddresses[e.options.ClusterID] {
		for _, g := range e.gatewayPorts(h) {
			g.Cluster, g.Addr = e.options.ClusterID, address
			g.Port = nodePort(ports, g.Port) // the port for tunnels is not mapped, as in Istio 1.30
			out = append(out, g)
		}
	}
	return out
}

func nodePort(ports map[uint32]uint32, port uint32) uint32 {
	if p, ok := ports[port]; ok {
		return p
	}
	return port
}

// gatewayPorts returns the gateway ports of a service, according to the labels of the service, or
// else the mesh. Ports in a label are used only if the service has them.
func (e *engine) gatewayPorts(h *host) []registry.NetworkGateway {
	s := h.view.service
	network := s.Attributes.Labels[topo.Network]
	if network == "" {
		return e.mesh.gateways[h.hostname]
	}
	g := registry.NetworkGateway{Network: network, Port: gatewayPort, HBONEPort: gatewayHBONEPort}
	if n, err := strconv.ParseUint(s.Attributes.Labels[labelGatewayPort], 10, 32); err == nil {
		g.Port = uint32(n)
	}
	if !accepts(s, g.Port) {
		g.Port = 0
	}
	if !accepts(s, g.HBONEPort) {
		g.HBONEPort = 0
	}
	if g.Port == 0 && g.HBONEPort == 0 {
		return nil
	}
	return []registry.NetworkGateway{g}
}

// accepts reports whether a service has a port with a number that is not for UDP.
func accepts(s *registry.Service, number uint32) bool {
	return slices.ContainsFunc(s.Ports, func(p *registry.Port) bool {
		return p.Number == number && p.Protocol != registry.ProtocolUDP
	})
}
