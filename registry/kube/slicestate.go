// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"slices"

	"github.com/pilotkit/pilotkit/registry"
)

// sliceNode is the place of a slice in the engine.
type sliceNode struct {
	object *slice // nil: gone
	host   *host  // nil: of no service
	dirty  bool
	// targets are the pods of the endpoints of the object, nil for one that names none.
	targets []*podNode
	// built are the endpoints as they are part of the host: those of the first
	// endpoint on each port, then of the second, and so on; nil where there is none.
	// from are the states of the pods that they were made of.
	built []*registry.Endpoint
	from  []*podState
	// builtFor is the object of which built was made.
	builtFor *slice
}

// putSlice takes the state of a slice; nil if it does not exist.
func (e *engine) putSlice(k objectKey, s *slice) {
	space := e.space(k.namespace)
	n := space.slices[k.name]
	switch {
	case n == nil && s == nil:
		return
	case n == nil:
		n = &sliceNode{}
		space.slices[k.name] = n
	case s != nil && sameSlice(s, n.object):
		return
	case s == nil:
		delete(space.slices, k.name)
	}
	e.batch.rebuild(n)
	e.detach(n, s)
	n.object = s
	if s != nil {
		e.attach(n)
	}
}

// detach takes a slice away from what its endpoints name. The endpoints that were
// made of it leave its host, unless it stays with it.
func (e *engine) detach(n *sliceNode, next *slice) {
	if n.object == nil {
		return
	}
	for i, t := range n.targets {
		if t == nil {
			a := spaceAddress{n.object.namespace, n.object.endpoints[i].address}
			if left := without(e.untargeted[a], n); left == nil {
				delete(e.untargeted, a)
			} else {
				e.untargeted[a] = left
			}
			continue
		}
		t.slices = without(t.slices, n)
		e.batch.released = append(e.batch.released, t)
	}
	n.targets = nil
	if n.host != nil && (next == nil || next.service != n.object.service) {
		e.clearSlice(n)
		n.host.slices = without(n.host.slices, n)
		e.batch.forget = append(e.batch.forget, n.host)
		n.host = nil
	}
}

// attach is the reverse of detach.
func (e *engine) attach(n *sliceNode) {
	s := n.object
	if s.service == "" {
		return
	}
	if n.host == nil {
		n.host = e.host(objectKey{s.namespace, s.service})
		n.host.slices = append(slices.Clip(n.host.slices), n)
	}
	n.targets = make([]*podNode, len(s.endpoints))
	for i := range s.endpoints {
		ep := &s.endpoints[i]
		if ep.pod.name == "" {
			a := spaceAddress{s.namespace, ep.address}
			if l := e.untargeted[a]; !slices.Contains(l, n) {
				e.untargeted[a] = append(slices.Clip(l), n)
			}
			continue
		}
		t := e.podNode(ep.pod)
		n.targets[i] = t
		ep.share(t)
		if !slices.Contains(t.slices, n) {
			t.slices = append(slices.Clip(t.slices), n)
		}
	}
}

// share puts the texts of the target in the place of equal ones, so that there is
// one copy.
func (ep *sliceEndpoint) share(target *podNode) {
	ep.pod = target.key
	if target.state == nil {
		return
	}
	if i := slices.Index(target.state.object.addresses, ep.address); i >= 0 {
		ep.address = target.state.object.addresses[i]
	}
}

// clearSlice takes the endpoints of a slice out of its host.
func (e *engine) clearSlice(n *sliceNode) {
	for _, ep := range n.built {
		if ep != nil {
			n.host.remove(e, keyOf(ep), ep, n)
		}
	}
	n.built, n.from, n.builtFor = nil, nil, nil
}

// buildSlice makes the endpoints of a slice as they should be now, and changes its
// host by the difference. What is equal to an endpoint that is there is kept.
func (e *engine) buildSlice(n *sliceNode) {
	if n.host == nil {
		return
	}
	if n.object == nil || !n.host.reported() {
		e.clearSlice(n)
		return
	}
	s, ports := n.object, n.object.ports
	built := make([]*registry.Endpoint, 0, len(s.endpoints)*len(ports))
	from := make([]*podState, 0, len(s.endpoints))
	for i := range s.endpoints {
		ep := &s.endpoints[i]
		state := e.podOf(n, i)
		from = append(from, state)
		if former := e.stillBuilt(n, i, state); former != nil {
			built = append(built, former...)
			continue
		}
		for _, p := range ports {
			built = append(built, e.buildEndpoint(n.host, ep, p, state))
		}
	}
	dropRepeats(built)
	e.replaceBuilt(n, built)
	n.from, n.builtFor = from, s
}

// stillBuilt returns what was built of the endpoint at a position, if what it was
// built of is the same now; nil if not, or if a part was left out.
func (e *engine) stillBuilt(n *sliceNode, i int, state *podState) []*registry.Endpoint {
	was, is := n.builtFor, n.object
	if was == nil || n.host.rework || e.batch.networks || i >= len(was.endpoints) || n.from[i] != state ||
		was != is && (was.endpoints[i] != is.endpoints[i] || !slices.Equal(was.ports, is.ports)) {
		return nil
	}
	former := n.built[i*len(is.ports) : (i+1)*len(is.ports)]
	if slices.Contains(former, nil) {
		return nil
	}
	return former
}

// dropRepeats leaves of equal endpoints in one slice the first.
func dropRepeats(built []*registry.Endpoint) {
	seen := make(map[memberKey]*registry.Endpoint, len(built))
	for i, ep := range built {
		if ep == nil {
			continue
		}
		if first, ok := seen[keyOf(ep)]; !ok {
			seen[keyOf(ep)] = ep
		} else if sameEndpoint(first, ep) {
			built[i] = nil
		}
	}
}

// podOf returns the pod of an endpoint: its target, or else the one that has its
// address; nil if there is none.
func (e *engine) podOf(n *sliceNode, i int) *podState {
	if t := n.targets[i]; t != nil {
		return t.state
	}
	l, _ := e.podsAt.Get(n.object.endpoints[i].address)
	var best *podState
	for _, p := range l.all() {
		if p.key.namespace == n.object.namespace && (best == nil || best.after(p.state)) {
			best = p.state
		}
	}
	return best
}

// after orders the pods of one address and namespace: those with an address of
// their own come before those of the host network, then the older one, then the
// name.
func (s *podState) after(t *podState) bool {
	a, b := s.object, t.object
	switch {
	case (a.flags^b.flags)&hostNetwork != 0:
		return a.flags&hostNetwork != 0
	case a.created != b.created:
		return a.created > b.created
	default:
		return a.name > b.name
	}
}

// buildEndpoint returns an endpoint on a port; nil if it names a pod that does not
// exist: never is an endpoint shown without its identity.
func (e *engine) buildEndpoint(h *host, ep *sliceEndpoint, p slicePort, state *podState) *registry.Endpoint {
	if state == nil && ep.pod.name != "" {
		return nil
	}
	out := &registry.Endpoint{
		EndpointPort: p.number, ServicePortName: p.name, HealthStatus: h.object.health(ep.state),
	}
	if state == nil {
		out.Addresses = []string{ep.address}
		out.Shared = e.bareAttributes(e.networkOf(ep.address, nil))
		return out
	}
	out.WorkloadName, out.Shared = state.object.workload, state.attributes
	switch pod := state.object; {
	case e.options.DualStack && len(pod.addresses) > 1 && h.object.dualStack():
		out.Addresses = pod.addresses
	case len(pod.addresses) == 1 && pod.addresses[0] == ep.address:
		out.Addresses = pod.addresses
	default:
		out.Addresses = []string{ep.address}
	}
	if state.attributes.Network == "" {
		if network := e.mesh.networkAt(ep.address); network != "" {
			out.Shared = e.withNetwork(state.attributes, network)
		}
	}
	return out
}

// withNetwork returns attributes in a network.
func (e *engine) withNetwork(a *registry.EndpointAttributes, network string) *registry.EndpointAttributes {
	out := *a
	out.Network = network
	out.Labels = e.augment(a.Labels, a.Locality, a.NodeName, network)
	return &out
}

// bareAttributes are those of an endpoint without a pod.
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

// replaceBuilt puts other endpoints in the place of those of a slice.
func (e *engine) replaceBuilt(n *sliceNode, built []*registry.Endpoint) {
	old := n.built
	reuse(old, built)
	if slices.Equal(old, built) {
		n.built = built
		return
	}
	kept, was := setOf(built), setOf(old)
	for _, ep := range old {
		if _, ok := kept[ep]; ep != nil && !ok {
			n.host.remove(e, keyOf(ep), ep, n)
		}
	}
	n.built = built
	for _, ep := range built {
		if _, ok := was[ep]; ep != nil && !ok {
			n.host.add(e, keyOf(ep), ep, n)
		}
	}
}

func setOf(endpoints []*registry.Endpoint) map[*registry.Endpoint]struct{} {
	out := make(map[*registry.Endpoint]struct{}, len(endpoints))
	for _, ep := range endpoints {
		out[ep] = struct{}{}
	}
	return out
}

// reuse puts former endpoints in the place of equal ones, each once: most are at
// the position that they had, the others are found by their keys.
func reuse(old, built []*registry.Endpoint) {
	left := 0
	for i, ep := range built {
		switch {
		case ep == nil:
		case i < len(old) && sameEndpoint(old[i], ep):
			built[i] = old[i]
		default:
			left++
		}
	}
	if left == 0 {
		return
	}
	former := make(map[memberKey]*registry.Endpoint, len(old))
	for i, ep := range old {
		if ep != nil && (i >= len(built) || built[i] != ep) {
			former[keyOf(ep)] = ep
		}
	}
	for i, ep := range built {
		if ep == nil || i < len(old) && old[i] == ep {
			continue
		}
		if f := former[keyOf(ep)]; sameEndpoint(f, ep) {
			built[i] = f
			delete(former, keyOf(ep))
		}
	}
}

func sameEndpoint(a, b *registry.Endpoint) bool {
	return a == b || a != nil && a.Address() == b.Address() && a.Equal(b)
}
