// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"net/netip"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/pilotkit/pilotkit/registry"
)

// clusterNetwork is the network of the cluster, by the system namespace or the
// mesh.
func (w *world) clusterNetwork() string {
	if n := w.namespaces[w.system]; n != nil && n.Labels["topology.istio.io/network"] != "" {
		return n.Labels["topology.istio.io/network"]
	}
	best := ""
	for _, n := range w.mesh.Networks {
		if slices.Contains(n.Registries, registry.ClusterID(w.cluster)) && (best == "" || n.Name < best) {
			best = n.Name
		}
	}
	return best
}

func (w *world) rangeNetwork(address string) string {
	a, err := netip.ParseAddr(address)
	if err != nil {
		return ""
	}
	best, bits := "", -1
	for _, n := range w.mesh.Networks {
		for _, p := range n.Ranges {
			if p.Contains(a) && (p.Bits() > bits || p.Bits() == bits && n.Name < best) {
				best, bits = n.Name, p.Bits()
			}
		}
	}
	return best
}

func (w *world) network(own map[string]string, addresses ...string) string {
	if n := own["topology.istio.io/network"]; n != "" {
		return n
	}
	if n := w.clusterNetwork(); n != "" {
		return n
	}
	for _, a := range addresses {
		if n := w.rangeNetwork(a); n != "" {
			return n
		}
	}
	return ""
}

// gateways returns the network gateways.
func (w *world) gateways() []record {
	found := map[string]record{}
	for _, s := range w.services {
		for _, g := range w.gatewayPorts(s) {
			for _, a := range w.external(s) {
				g := registry.NetworkGateway{
					Network: g.Network, Cluster: registry.ClusterID(w.cluster), Addr: a,
					Port: nodePortOf(s, g.Port), HBONEPort: g.HBONEPort,
				}
				r := viewGateway(g)
				found[r.text()] = r
			}
		}
	}
	var out []record
	for _, r := range found {
		out = append(out, r)
	}
	return out
}

func nodePortOf(s *corev1.Service, port uint32) uint32 {
	for _, p := range s.Spec.Ports {
		if isNodePort(s) && uint32(p.Port) == port {
			return uint32(p.NodePort)
		}
	}
	return port
}

func (w *world) gatewayPorts(s *corev1.Service) []registry.NetworkGateway {
	if network := s.Labels["topology.istio.io/network"]; network != "" {
		g := registry.NetworkGateway{Network: network}
		port := uint64(15443)
		if n, err := strconv.ParseUint(s.Labels["networking.istio.io/gatewayPort"], 10, 32); err == nil {
			port = n
		}
		for _, p := range s.Spec.Ports {
			if protocol(p) == "UDP" {
				continue
			}
			if uint64(p.Port) == port {
				g.Port = uint32(port)
			}
			if p.Port == 15008 {
				g.HBONEPort = 15008
			}
		}
		if g.Port == 0 && g.HBONEPort == 0 {
			return nil
		}
		return []registry.NetworkGateway{g}
	}
	var out []registry.NetworkGateway
	for _, n := range w.mesh.Networks {
		if !slices.Contains(n.Registries, registry.ClusterID(w.cluster)) {
			continue
		}
		for _, g := range n.Gateways {
			if string(g.Hostname) == w.hostname(s.Namespace, s.Name) {
				out = append(out, registry.NetworkGateway{Network: n.Name, Port: g.Port})
			}
		}
	}
	return out
}
