// SPDX-License-Identifier: Apache-2.0

package serviceentry

import (
	"cmp"
	"slices"
	"strings"

	"github.com/pilotkit/pilotkit/internal/limit"
	"github.com/pilotkit/pilotkit/registry"
)

// InstancesByPort implements registry.ServiceDiscovery. All entries that define
// the host in the service's namespace contribute instances; those on a port that
// the service lacks are instances of the oldest of the others that has it.
func (c *Controller) InstancesByPort(svc *registry.Service, servicePort uint32) []*registry.ServiceInstance {
	if svc == nil {
		return nil
	}
	view := c.publisher.State().host(hostKey{svc.Attributes.Namespace, svc.Hostname})
	if view == nil {
		return nil
	}
	var out []registry.ServiceInstance
	for e := range view.endpoints.All() {
		if servicePort != 0 && e.ServicePort != servicePort {
			continue
		}
		if s := withPort(svc, view.services, e.ServicePort); s != nil {
			out = append(out, registry.ServiceInstance{Service: s, ServicePort: portOf(s, e), Endpoint: e})
		}
	}
	return pointers(out)
}

func withPort(svc *registry.Service, others []*registry.Service, number uint32) *registry.Service {
	if svc.Port(number) != nil {
		return svc
	}
	for _, s := range others {
		if s.Port(number) != nil {
			return s
		}
	}
	return nil
}

// portOf returns the port that an endpoint serves. The name distinguishes ports of
// one number, which only unvalidated entries have; but the endpoints of another
// entry may have other names for it.
func portOf(s *registry.Service, e *registry.Endpoint) *registry.Port {
	if p := s.PortByName(e.ServicePortName); p != nil && p.Number == e.ServicePort {
		return p
	}
	return s.Port(e.ServicePort)
}

// GetProxyServiceInstances implements registry.ServiceDiscovery. If workloads have the same address
// and the same name, it returns only the instances of the last one.
func (c *Controller) GetProxyServiceInstances(proxy *registry.Proxy) []*registry.ServiceInstance {
	var room [8]registry.ServiceInstance
	out := room[:0]
	s := c.publisher.State()
	for _, ip := range proxy.IPAddresses {
		out = s.instancesAt(ip, proxy.Namespace, out)
	}
	if len(proxy.IPAddresses) > 1 {
		out = eachOnce(out)
	}
	return pointers(out)
}

// eachOnce removes the repeated instances of workloads with several addresses.
func eachOnce(list []registry.ServiceInstance) []registry.ServiceInstance {
	seen := map[registry.ServiceInstance]bool{}
	return slices.DeleteFunc(list, func(i registry.ServiceInstance) bool {
		again := seen[i]
		seen[i] = true
		return again
	})
}

// GetProxyWorkloadLabels implements registry.ServiceDiscovery. Of several
// workloads at the address, pods come before WorkloadEntries and these before
// endpoints that are written in entries; then the namespace and the name decide.
func (c *Controller) GetProxyWorkloadLabels(proxy *registry.Proxy) registry.Labels {
	s := c.publisher.State()
	for _, ip := range proxy.IPAddresses {
		var best *contribution
		for _, m := range s.contributionsAt(ip, proxy.Namespace, nil) {
			if !m.self && (best == nil || m.compare(best) < 0) {
				best = m
			}
		}
		if best == nil {
			continue
		}
		if labels := best.endpoints[0].Attributes().Labels; labels != nil {
			return labels
		}
		return registry.Labels{}
	}
	return nil
}

// NetworkGateways implements registry.ServiceDiscovery: there are none.
func (c *Controller) NetworkGateways() []registry.NetworkGateway { return nil }

// AppendNetworkGatewayHandler implements registry.ServiceDiscovery: there is
// never a change.
func (c *Controller) AppendNetworkGatewayHandler(func()) {}

// instancesAt appends the instances at an address, of services in a namespace or in
// all for "".
func (s *state) instancesAt(address, namespace string, to []registry.ServiceInstance) []registry.ServiceInstance {
	var room [8]*contribution
	for _, m := range s.contributionsAt(address, namespace, room[:0]) {
		for _, b := range s.bindings(m) {
			to = b.instances(m, to)
		}
	}
	return to
}

// instances appends the instances from a contribution to the services of a binding.
func (b *bindingView) instances(m *contribution, to []registry.ServiceInstance) []registry.ServiceInstance {
	for _, s := range b.services {
		for i := range m.endpoints {
			if b.roundRobin == nil || b.roundRobin.contribution == m && b.roundRobin.ports[i] {
				to = append(to, registry.ServiceInstance{Service: s, ServicePort: s.Ports[i], Endpoint: &m.endpoints[i]})
			}
		}
	}
	return to
}

// contributionsAt returns the contributions at an address that have instances, in their
// order, in to, which is empty.
func (s *state) contributionsAt(address, namespace string, to []*contribution) []*contribution {
	for m := range s.contributions(addressText(address)).all {
		if s.hasInstances(m, namespace) {
			to = append(to, m)
		}
	}
	if len(to) > 1 {
		slices.SortFunc(to, (*contribution).compareInstances)
		to = lastOfEach(to)
	}
	return to
}

func (s *state) hasInstances(m *contribution, namespace string) bool {
	return slices.ContainsFunc(s.bindings(m), func(b bindingView) bool {
		return (namespace == "" || namespace == b.host.namespace) &&
			(b.roundRobin == nil || b.roundRobin.contribution == m && slices.Contains(b.roundRobin.ports, true))
	})
}

// bindings returns the bindings that a contribution is in.
func (s *state) bindings(m *contribution) []bindingView {
	view := s.entry(m.entry)
	if view == nil {
		return nil
	}
	all := view.bindings
	if !m.self {
		return all
	}
	for i, b := range all {
		if string(b.host.hostname) == m.endpoints[0].Address() {
			return all[i : i+1]
		}
	}
	return nil
}

// lastOfEach keeps of neighbours that are not distinguished the last.
func lastOfEach(list []*contribution) []*contribution {
	out := list[:0]
	for i, m := range list {
		if i+1 < len(list) && m.alike(list[i+1]) {
			continue
		}
		out = append(out, m)
	}
	return out
}

// alike reports whether contributions of one entry have the same address and workload
// name. Istio 1.30 knows only one of them as an instance.
func (m *contribution) alike(n *contribution) bool {
	e, f := &m.endpoints[0], &n.endpoints[0]
	return m.entry == n.entry && e.WorkloadName == f.WorkloadName &&
		e.Attributes().Namespace == f.Attributes().Namespace && e.Address() == f.Address()
}

// compareInstances orders the contributions at an address: by entry, then with similar ones
// together, then by workload.
func (m *contribution) compareInstances(n *contribution) int {
	e, f := &m.endpoints[0], &n.endpoints[0]
	return cmp.Or(
		m.entry.name.compare(n.entry.name),
		strings.Compare(e.Address(), f.Address()),
		strings.Compare(e.Attributes().Namespace, f.Attributes().Namespace),
		strings.Compare(e.WorkloadName, f.WorkloadName),
		m.workload.compare(n.workload),
	)
}

// compare is the order in which contributions are searched for the labels of a proxy.
func (m *contribution) compare(n *contribution) int {
	e, f := &m.endpoints[0], &n.endpoints[0]
	return cmp.Or(
		m.workload.compare(n.workload),
		strings.Compare(e.Attributes().Namespace, f.Attributes().Namespace),
		strings.Compare(e.WorkloadName, f.WorkloadName),
		m.entry.name.compare(n.entry.name),
	)
}

// pointers returns pointers to copies of the instances; the usual few are one
// piece of memory with the slice.
func pointers(list []registry.ServiceInstance) []*registry.ServiceInstance {
	if len(list) == 0 {
		return nil
	}
	var copies []registry.ServiceInstance
	var out []*registry.ServiceInstance
	if len(list) <= few.Get() {
		block := &fewInstances{}
		copies, out = block.instances[:len(list)], block.pointers[:len(list)]
	} else {
		copies, out = make([]registry.ServiceInstance, len(list)), make([]*registry.ServiceInstance, len(list))
	}
	copy(copies, list)
	for i := range copies {
		out[i] = &copies[i]
	}
	return out
}

const few limit.Size = 4

type fewInstances struct {
	instances [few]registry.ServiceInstance
	pointers  [few]*registry.ServiceInstance
}
