// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"fmt"
	"slices"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/mesh"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/objects"
)

func (f *findings) sidecar(s *objects.Sidecar) func() []Effect {
	for _, b := range f.Sidecars.In(s.Namespace) {
		if b == s {
			break
		}
		if b.Selector.SubsetOf(s.Selector) {
			f.add("", "Sidecar %s is for the same workloads and comes first", b)
			return nil
		}
	}
	if mode := s.Spec.GetOutboundTrafficPolicy().GetMode(); networking.OutboundTrafficPolicy_Mode_name[int32(mode)] == "" {
		f.add("spec.outboundTrafficPolicy.mode", "%d is not known: requests to unknown hosts are blocked, as by REGISTRY_ONLY", mode)
	}
	f.tooManyImports(s)
	if len(s.Spec.GetIngress()) > 0 {
		f.add("spec.ingress", "the inbound side of proxies is not configured")
	}
	clients := "sidecars and gRPC clients of namespace " + s.Namespace
	switch {
	case s.Selective():
		clients += " with the labels " + s.Selector.String()
		f.unknownHosts(s)
	case s.Namespace == f.settings.RootNamespace(): // Hosts of namespace "." refer to the namespace of each proxy.
		clients = "sidecars and gRPC clients of all namespaces without a Sidecar of their own"
	default:
		f.unknownHosts(s)
	}
	return func() []Effect {
		seen := len(mesh.NewScope(f.Index, f.world, s, s.Namespace, f.settings.limits.Imports).Sorted)
		return []Effect{{clients, fmt.Sprintf("%d services are seen", seen)}}
	}
}

// unknownHosts adds findings for hosts that a Sidecar imports and nothing has.
func (f *findings) unknownHosts(s *objects.Sidecar) {
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
