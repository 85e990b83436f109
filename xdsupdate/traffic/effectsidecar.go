// SPDX-License-Identifier: Apache-2.0

package traffic

import "slices"

func (s *sidecar) report(f *findings) {
	for _, b := range f.sidecars.in(s.namespace) {
		if b == s {
			break
		}
		if b.selector.SubsetOf(s.selector) {
			f.add("", "Sidecar %s is for the same workloads and comes first", b)
			return
		}
	}
	f.outboundPolicy(s)
	f.tooManyImports(s)
	if len(s.spec.GetIngress()) > 0 {
		f.add("spec.ingress", "the inbound side of proxies is not configured")
	}
	if s.namespace == f.settings.rootNamespace() && !s.selective() {
		return // Hosts of namespace "." refer to the namespace of each proxy.
	}
	for i, l := range s.spec.GetEgress() {
		for j, host := range l.GetHosts() {
			parsed := newEgressHosts([]string{host}, s.namespace)
			if len(parsed.include.list) == 1 && !f.imports(parsed) {
				f.add(element(element("spec.egress", i)+".hosts", j), "no service and no VirtualService is %q", host)
			}
		}
	}
}

func (f *findings) tooManyImports(s *sidecar) {
	if len(s.listeners()) < 2 {
		return
	}
	scope := newScope(f.index, f.world, s, s.namespace)
	for _, e := range scope.egress {
		f.addErrors(newLeftOutErrors(f.leftOutOf(scope, e)))
	}
}

func (f *findings) imports(hosts egressHosts) bool {
	return f.some(hosts.include.list[0].host, hosts.service) || slices.ContainsFunc(f.virtualServices, hosts.virtualService)
}
