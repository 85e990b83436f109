// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"slices"
	"sync"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/hostname"
)

// MeshGateway stands for all sidecars and gRPC clients in the gateways of a VirtualService.
const MeshGateway = "mesh"

// VirtualService is a VirtualService with its names resolved. It is immutable.
type VirtualService struct {
	Stored
	Spec *networking.VirtualService
	// Hosts are in the order of the spec. A VirtualService without hosts is a delegate.
	Hosts []registry.Hostname
	// Gateways are "mesh" and "namespace/name".
	Gateways   []string
	Visibility Visibility
	// ownMatches is the number of matches of the rules that do not delegate. A rule without a match
	// counts as one.
	ownMatches int
	// Rules returns the HTTP rules with full names and without expanded delegates.
	Rules func() []*networking.HTTPRoute
}

func newVirtualService(c *configstore.Config, spec *networking.VirtualService, s *Settings) *VirtualService {
	v := &VirtualService{
		Stored: newStored(c), Spec: spec,
		Visibility: newVisibility(spec.GetExportTo(), s.Mesh.GetDefaultVirtualServiceExportTo(), c.Namespace),
		Gateways:   ResolveGateways(spec.GetGateways(), c.Namespace),
	}
	for _, h := range spec.GetHosts() {
		v.Hosts = append(v.Hosts, hostname.Resolve(h, c.Namespace, s.Domain))
	}
	for _, r := range spec.GetHttp() {
		if r.GetDelegate() == nil {
			v.ownMatches += max(1, len(r.GetMatch()))
		}
	}
	if len(v.Gateways) == 0 {
		v.Gateways = []string{MeshGateway}
	}
	v.Rules = sync.OnceValue(func() []*networking.HTTPRoute { return resolveRules(v, s.Domain) })
	return v
}

// ResolveGateways returns the full names of gateways.
func ResolveGateways(names []string, namespace string) []string {
	var out []string
	for _, n := range names {
		if n != MeshGateway {
			n = parseObjectName(n, namespace).String()
		}
		out = append(out, n)
	}
	return out
}

// Delegate reports whether the VirtualService can only be included by others.
func (v *VirtualService) Delegate() bool { return len(v.Hosts) == 0 }

// BoundTo reports whether the VirtualService is bound to a gateway ("namespace/name"), or to
// "mesh".
func (v *VirtualService) BoundTo(gateway string) bool { return slices.Contains(v.Gateways, gateway) }

// Rank orders VirtualServices for proxies of a namespace before age does. VirtualServices of this
// namespace that are not public come first. An export by name gives no precedence, because any
// namespace can export to any other.
func (v *VirtualService) Rank(namespace string) int {
	if v.Namespace == namespace && !v.Visibility.Public {
		return 0
	}
	return 1
}

// BoundToGateway reports whether a VirtualService is bound to some Gateway.
func (v *VirtualService) BoundToGateway() bool {
	for _, g := range v.Gateways {
		if g != MeshGateway {
			return true
		}
	}
	return false
}
