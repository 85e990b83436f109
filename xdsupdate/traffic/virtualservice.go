// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"slices"
	"sync"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/registry"
)

// meshGateway stands for all sidecars and gRPC clients in the gateways of a VirtualService.
const meshGateway = "mesh"

// virtualService is a VirtualService with its names resolved. It is immutable.
type virtualService struct {
	stored
	spec *networking.VirtualService
	// hosts are in the order of the spec. A VirtualService without hosts is a delegate.
	hosts []registry.Hostname
	// gateways are "mesh" and "namespace/name".
	gateways   []string
	visibility visibility
	// ownMatches is the number of matches of the rules that do not delegate. A rule without a match
	// counts as one.
	ownMatches int
	// rules returns the HTTP rules with full names and without expanded delegates.
	rules func() []*networking.HTTPRoute
}

func newVirtualService(c *configstore.Config, spec *networking.VirtualService, s *settings) *virtualService {
	v := &virtualService{
		stored: newStored(c), spec: spec,
		visibility: newVisibility(spec.GetExportTo(), s.mesh.GetDefaultVirtualServiceExportTo(), c.Namespace),
		gateways:   resolveGateways(spec.GetGateways(), c.Namespace),
	}
	for _, h := range spec.GetHosts() {
		v.hosts = append(v.hosts, resolveHost(h, c.Namespace, s.domain))
	}
	for _, r := range spec.GetHttp() {
		if r.GetDelegate() == nil {
			v.ownMatches += max(1, len(r.GetMatch()))
		}
	}
	if len(v.gateways) == 0 {
		v.gateways = []string{meshGateway}
	}
	v.rules = sync.OnceValue(func() []*networking.HTTPRoute { return resolveRules(v, s.domain) })
	return v
}

// resolveGateways returns the full names of gateways.
func resolveGateways(names []string, namespace string) []string {
	var out []string
	for _, n := range names {
		if n != meshGateway {
			n = parseObjectName(n, namespace).String()
		}
		out = append(out, n)
	}
	return out
}

// delegate reports whether the VirtualService can only be included by others.
func (v *virtualService) delegate() bool { return len(v.hosts) == 0 }

// boundTo reports whether the VirtualService is bound to a gateway ("namespace/name"), or to
// "mesh".
func (v *virtualService) boundTo(gateway string) bool { return slices.Contains(v.gateways, gateway) }

// rank orders VirtualServices for proxies of a namespace before age does. VirtualServices of this
// namespace that are not public come first. An export by name gives no precedence, because any
// namespace can export to any other.
func (v *virtualService) rank(namespace string) int {
	if v.namespace == namespace && !v.visibility.public {
		return 0
	}
	return 1
}
