// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"net/netip"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/kube"
)

// meshConfig is what scenarios set of a mesh configuration.
type meshConfig struct {
	TrustDomain        string                 `json:"trustDomain"`
	DiscoverySelectors []metav1.LabelSelector `json:"discoverySelectors"`
}

func parseMeshConfig(text string) (meshConfig, error) {
	var m meshConfig
	err := sigsyaml.Unmarshal([]byte(text), &m)
	return m, err
}

// parseNetworks reads mesh networks.
func parseNetworks(text string) ([]kube.Network, error) {
	var m struct {
		Networks map[string]struct {
			Endpoints []struct{ FromCidr, FromRegistry string }
			Gateways  []struct {
				RegistryServiceName, Address string
				Port                         uint32
			}
		}
	}
	if err := sigsyaml.Unmarshal([]byte(text), &m); err != nil {
		return nil, err
	}
	var out []kube.Network
	for name, n := range m.Networks {
		network := kube.Network{Name: name}
		for _, e := range n.Endpoints {
			if p, err := netip.ParsePrefix(e.FromCidr); err == nil {
				network.Ranges = append(network.Ranges, p)
			}
			if e.FromRegistry != "" {
				network.Registries = append(network.Registries, registry.ClusterID(e.FromRegistry))
			}
		}
		for _, g := range n.Gateways {
			if g.RegistryServiceName != "" {
				network.Gateways = append(network.Gateways, kube.NetworkGatewayService{
					Hostname: registry.Hostname(g.RegistryServiceName), Port: g.Port,
				})
			}
		}
		out = append(out, network)
	}
	return out, nil
}
