// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"slices"

	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/mesh"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/objects"
)

func (f *findings) sidecar(s *objects.Sidecar) {
	for _, b := range f.Sidecars.In(s.Namespace) {
		if b == s {
			break
		}
		if b.Selector.SubsetOf(s.Selector) {
			f.add("", "Sidecar %s is for the same workloads and comes first", b)
			return
		}
	}
	f.outboundPolicy(s)
	f.tooManyImports(s)
	if len(s.Spec.GetIngress()) > 0 {
		f.add("spec.ingress", "the inbound side of proxies is not configured")
	}
	if s.Namespace == f.settings.RootNamespace() && !s.Selective() {
		return // Hosts of namespace "." refer to the namespace of each proxy.
	}
	for i, l := range s.Spec.GetEgress() {
		for j, host := range l.GetHosts() {
			parsed := mesh.NewEgressHosts([]string{host}, s.Namespace)
			if len(parsed.Include.List) == 1 && !f.imports(parsed) {
				f.add(objects.Element(objects.Element("spec.egress", i)+".hosts", j), "no service and no VirtualService is %q", host)
			}
		}
	}
}

func (f *findings) tooManyImports(s *objects.Sidecar) {
	if len(s.Listeners()) < 2 {
		return
	}
	scope := mesh.NewScope(f.Index, f.world, s, s.Namespace, f.settings.limits.Imports)
	for _, e := range scope.Egress {
		f.addErrors(newLeftOutErrors(f.leftOutOf(scope, e)))
	}
}

func (f *findings) imports(hosts mesh.EgressHosts) bool {
	return f.some(hosts.Include.List[0].Host, hosts.Service) || slices.ContainsFunc(f.VirtualServices, hosts.VirtualService)
}
