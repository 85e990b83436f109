// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"slices"

	"github.com/pilotkit/pilotkit/registry"
)

// l4Sources adds findings for matches of TCP and TLS routes on client labels, which gateways do not
// know.
func (f *findings) l4Sources(v *virtualService) {
	for i, r := range v.spec.GetTcp() {
		for j, m := range r.GetMatch() {
			f.l4Source(v, element(element("spec.tcp", i)+".match", j), m)
		}
	}
	for i, r := range v.spec.GetTls() {
		for j, m := range r.GetMatch() {
			f.l4Source(v, element(element("spec.tls", i)+".match", j), m)
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
