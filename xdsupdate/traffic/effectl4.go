// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"slices"

	"github.com/pilotkit/pilotkit/registry"
)

// l4Sources adds findings for matches of TCP and TLS routes on client labels, which gateways do not
// know.
func (f *findings) l4Sources(v *virtualService) {
	for _, r := range v.l4Routes() {
		for j, m := range r.matches {
			f.l4Source(v, element(r.field+".match", j), m)
		}
	}
}

func (f *findings) l4Source(v *virtualService, field string, m l4Match) {
	labels := registry.Labels(m.GetSourceLabels())
	if len(labels) == 0 {
		return
	}
	names := v.gateways
	if len(m.GetGateways()) > 0 {
		names = resolveGateways(m.GetGateways(), v.namespace)
	}
	selecting := func(name string) bool {
		return slices.ContainsFunc(f.gateways, func(g *gateway) bool {
			return g.String() == name && labels.SubsetOf(g.router().labels)
		})
	}
	if onlyMesh := slices.Equal(names, []string{meshGateway}); !onlyMesh && !slices.ContainsFunc(names, selecting) {
		f.add(field+".sourceLabels", "gateways do not know the labels of their clients: the match is left out by those that do not have the labels %s themselves", labels)
	}
}
