// SPDX-License-Identifier: Apache-2.0

package kube

import "github.com/pilotkit/pilotkit/registry"

// buildSlice rebuilds the endpoints of a slice. Endpoints whose inputs did not change are kept.
func (e *engine) buildSlice(n *sliceNode) {
	if !n.host.reported() {
		e.clearSlice(n)
		return
	}
	all := n.host.work.needsRework() || e.batch.networks
	for i := range n.endpoints {
		l := &n.endpoints[i]
		// For an endpoint without a target, the pod at its address is looked up again.
		if !all && !l.stale && l.target != nil && !l.target.dirty {
			continue
		}
		l.stale = false
		e.setBuilt(n, i, e.buildEndpoints(n, i))
	}
}

// buildEndpoints returns the endpoints of a listed endpoint on all ports. It returns nil if the
// listed endpoint references a pod that does not exist, because an endpoint is never shown without
// its identity. The result is valid until the next call.
func (e *engine) buildEndpoints(n *sliceNode, i int) []*registry.Endpoint {
	l, pod := &n.endpoints[i], e.podOf(n, i)
	if pod == nil && l.target != nil {
		return nil
	}
	e.building = e.building[:0]
	from, _ := n.of(i)
	for j, p := range n.ports {
		e.building = append(e.building, e.buildEndpoint(n.host, l, p, pod, n.built[from+j]))
	}
	return e.building
}

// podOf returns the pod of an endpoint: its target, or else the pod at its address; nil if there is
// none.
func (e *engine) podOf(n *sliceNode, i int) *podEntry {
	l := &n.endpoints[i]
	if l.target != nil {
		return l.target.pod()
	}
	p, _ := e.holders.Get(l.address)
	var best *podEntry
	for pod := range p.pods.all {
		if s := pod.pod(); s.Key.namespace == n.host.namespace && (best == nil || after(best, s)) {
			best = s
		}
	}
	return best
}

// after orders the pods of one address and namespace: pods with an address of their own precede
// pods of the host network; then the order is by age, oldest first, and by name.
func after(s, t *podEntry) bool {
	a, b := &s.Value, &t.Value
	switch {
	case (a.flags^b.flags)&hostNetwork != 0:
		return a.flags&hostNetwork != 0
	case a.created != b.created:
		return a.created > b.created
	default:
		return s.Key.name > t.Key.name
	}
}

// buildEndpoint returns an endpoint on a port: the old one if it is equal.
func (e *engine) buildEndpoint(h *host, l *listedEndpoint, p slicePort, pod *podEntry, old *registry.Endpoint) *registry.Endpoint {
	next := registry.Endpoint{
		EndpointPort: p.number, ServicePortName: p.name, HealthStatus: h.object.health(l.conditions),
		Addresses: e.addressesOf(h, l, pod, old),
	}
	if pod == nil {
		next.Shared = e.bareAttributes(e.networkOf(l.address, nil))
	} else {
		next.WorkloadName, next.Shared = pod.Value.template.workload, e.attributesAt(pod, l.address)
	}
	if sameEndpoint(old, &next) {
		return old
	}
	out := next
	return &out
}

// addressesOf returns the addresses of an endpoint: the pod's if the service has several, too,
// otherwise the listed address. Equal lists share one copy.
func (e *engine) addressesOf(h *host, l *listedEndpoint, pod *podEntry, old *registry.Endpoint) []string {
	if pod != nil {
		addresses := pod.Value.addresses
		if len(addresses) == 1 && addresses[0] == l.address {
			l.address = addresses[0]
			return addresses
		}
		if e.options.DualStack && len(addresses) > 1 && h.object.dualStack() {
			return addresses
		}
	}
	if old != nil && len(old.Addresses) == 1 && old.Addresses[0] == l.address {
		return old.Addresses
	}
	return []string{l.address}
}

// attributesAt returns the attributes of a pod at an address. A pod without a network is in the
// network whose range contains the address.
func (e *engine) attributesAt(s *podEntry, address string) *registry.EndpointAttributes {
	a := s.Value.attributes
	if a.Network != "" {
		return a
	}
	network := e.mesh.networkAt(address)
	if network == "" {
		return a
	}
	out := *a
	out.Network = network
	out.Labels = e.augment(a.Labels, a.Locality, a.NodeName, network)
	return &out
}

// bareAttributes returns the attributes of an endpoint without a pod.
func (e *engine) bareAttributes(network string) *registry.EndpointAttributes {
	a := e.bare[network]
	if a == nil {
		a = &registry.EndpointAttributes{
			Labels: e.augment(nil, "", "", network), Network: network, ClusterID: e.options.ClusterID,
			SendUnhealthyEndpoints: true, TLSMode: "disabled",
		}
		e.bare[network] = a
	}
	return a
}
