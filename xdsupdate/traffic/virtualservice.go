// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"slices"
	"sync"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/registry"
)

// meshGateway is the name that stands for all sidecars and gRPC clients in the
// gateways of a VirtualService.
const meshGateway = "mesh"

// virtualService is a VirtualService with its names resolved. It is immutable.
type virtualService struct {
	objectName
	config *configstore.Config
	spec   *networking.VirtualService
	// hosts are in the order of the spec; none: it is a delegate.
	hosts []registry.Hostname
	// gateways are "mesh" and "namespace/name".
	gateways   []string
	visibility visibility
	// ownMatches is how many matches the rules have that do not delegate, at least one each.
	ownMatches int
	// rules returns the HTTP rules with all names in full, delegates not expanded.
	rules func() []*networking.HTTPRoute
}

func newVirtualService(c *configstore.Config, s *settings) *virtualService {
	spec, _ := c.Spec.(*networking.VirtualService)
	if spec == nil {
		return nil
	}
	v := &virtualService{
		objectName: objectName{c.Namespace, c.Name}, config: c, spec: spec,
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

// resolveGateways returns names of gateways in full; nil for none.
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

// delegate reports whether it is there to be included by others only.
func (v *virtualService) delegate() bool { return len(v.hosts) == 0 }

// boundTo reports whether it counts for a gateway ("namespace/name"), or for
// "mesh".
func (v *virtualService) boundTo(gateway string) bool { return slices.Contains(v.gateways, gateway) }

// rank orders VirtualServices for proxies of a namespace before their age: those that are
// visible there alone because they are its own come first. An export by name gives no
// precedence, because anybody can export to anybody.
func (v *virtualService) rank(namespace string) int {
	if v.namespace == namespace && !v.visibility.public {
		return 0
	}
	return 1
}
