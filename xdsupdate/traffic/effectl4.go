// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"slices"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/objects"
)

// l4Sources adds findings for matches of TCP and TLS routes on client labels, which gateways do not
// know.
func (f *findings) l4Sources(v *objects.VirtualService) {
	for _, r := range v.L4Routes() {
		for j, m := range r.Matches {
			f.l4Source(v, objects.Element(r.Field+".match", j), m)
		}
	}
}

func (f *findings) l4Source(v *objects.VirtualService, field string, m objects.L4Match) {
	labels := registry.Labels(m.GetSourceLabels())
	if len(labels) == 0 {
		return
	}
	names := v.Gateways
	if len(m.GetGateways()) > 0 {
		names = objects.ResolveGateways(m.GetGateways(), v.Namespace)
	}
	selecting := func(name string) bool {
		return slices.ContainsFunc(f.Gateways, func(g *objects.Gateway) bool {
			return g.String() == name && labels.SubsetOf(g.Router().Labels)
		})
	}
	if onlyMesh := slices.Equal(names, []string{objects.MeshGateway}); !onlyMesh && !slices.ContainsFunc(names, selecting) {
		f.add(field+".sourceLabels", "gateways do not know the labels of their clients: the match is left out by those that do not have the labels %s themselves", labels)
	}
}
