// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"encoding/json"
	"net/netip"

	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/encoding/protojson"

	meshapi "istio.io/api/mesh/v1alpha1"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/serviceentry"
)

// meshOf reads a mesh config. Fields that the registry does not use are ignored.
func meshOf(text string) (serviceentry.Mesh, error) {
	var generic map[string]any
	if err := yaml.Unmarshal([]byte(text), &generic); err != nil {
		return serviceentry.Mesh{}, err
	}
	data, err := json.Marshal(generic)
	if err != nil {
		return serviceentry.Mesh{}, err
	}
	config := &meshapi.MeshConfig{}
	if len(generic) > 0 {
		if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(data, config); err != nil {
			return serviceentry.Mesh{}, err
		}
	}
	return serviceentry.MeshOf(config), nil
}

// networkOf is the function of the scenario's network rules: the first rule whose
// given parts match.
func networkOf(rules []networkRule) func(string, registry.Labels) string {
	if len(rules) == 0 {
		return nil
	}
	return func(address string, labels registry.Labels) string {
		for _, r := range rules {
			if r.CIDR != "" && !contains(r.CIDR, address) {
				continue
			}
			if registry.Labels(r.Labels).SubsetOf(labels) {
				return r.Network
			}
		}
		return ""
	}
}

func contains(cidr, address string) bool {
	p, err := netip.ParsePrefix(cidr)
	if err != nil {
		return false
	}
	a, err := netip.ParseAddr(address)
	return err == nil && p.Contains(a)
}

func (n namespace) registryNamespace() serviceentry.Namespace {
	return serviceentry.Namespace{Name: n.Name, Labels: n.Labels, Annotations: n.Annotations}
}
