// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"slices"

	"github.com/pilotkit/pilotkit/registry"
)

// sliceNode is a slice in the engine. One that moves to another service is another
// node.
type sliceNode struct {
	name string
	// host is what the slice is of; nil if it is of no service. It never changes.
	host      *host
	ports     []slicePort
	endpoints []listedEndpoint
	// built are the endpoints that the slice contributes to the host, unless another
	// one with the same key counts instead: those of the first listed endpoint on each
	// port, then of the second, and so on. A listed endpoint has one on each port, or
	// none at all: then they are nil.
	built []*registry.Endpoint
	dirty bool
}

// listedEndpoint is one address of one endpoint of a slice.
type listedEndpoint struct {
	address string
	// target is nil if the endpoint names no pod.
	target     *podNode
	conditions conditions
	// stale: the endpoints that are built are not of these conditions and ports.
	stale bool
}

// names reports whether a pod is the target; the zero key stands for none.
func (l *listedEndpoint) names(pod objectKey) bool {
	if l.target == nil {
		return pod.name == ""
	}
	return l.target.key() == pod
}

// service returns the name of the service that the slice is of; "" if it is of none.
func (n *sliceNode) service() string {
	if n.host == nil {
		return ""
	}
	return n.host.name
}

// read returns what was read of the slice, which is in a namespace.
func (n *sliceNode) read(namespace string) *slice {
	out := &slice{objectKey: objectKey{namespace, n.name}, service: n.service(), ports: n.ports}
	for i := range n.endpoints {
		l := &n.endpoints[i]
		ep := sliceEndpoint{address: l.address, position: int32(i), conditions: l.conditions}
		if l.target != nil {
			ep.pod = l.target.key()
		}
		out.endpoints = append(out.endpoints, ep)
	}
	return out
}

// of returns the range of built that is of one listed endpoint.
func (n *sliceNode) of(i int) (from, to int) { return i * len(n.ports), (i + 1) * len(n.ports) }

// putSlice takes a slice as it is now; nil if it does not exist.
func (e *engine) putSlice(k objectKey, s *slice) {
	space := e.space(k.namespace)
	n := space.slices[k.name]
	if n != nil && (s == nil || n.service() != s.service) {
		e.dropSlice(n)
		delete(space.slices, k.name)
		n = nil
	}
	if s == nil {
		return
	}
	if n == nil {
		n = &sliceNode{name: k.name}
		space.slices[k.name] = n
		if s.service != "" {
			n.host = e.host(objectKey{k.namespace, s.service})
			n.host.slices = append(slices.Clip(n.host.slices), n)
		}
	}
	if n.host != nil {
		e.list(n, s)
	}
}

// dropSlice takes a slice, of which nothing remains, away from its host.
func (e *engine) dropSlice(n *sliceNode) {
	if n.host == nil {
		return
	}
	e.list(n, &slice{})
	n.host.slices = without(n.host.slices, n)
	e.batch.forget = append(e.batch.forget, n.host)
}

// list makes a slice list what s does. Both are sorted, so one pass finds what is
// listed still, and keeps what was built of it; the rest leaves the host at once.
func (e *engine) list(n *sliceNode, s *slice) {
	samePorts := slices.Equal(n.ports, s.ports)
	if samePorts && slices.EqualFunc(n.endpoints, s.endpoints, func(l listedEndpoint, ep sliceEndpoint) bool {
		return l.address == ep.address && l.conditions == ep.conditions && l.names(ep.pod)
	}) {
		return
	}
	if !samePorts {
		e.clearSlice(n)
	}
	endpoints := make([]listedEndpoint, len(s.endpoints))
	built := make([]*registry.Endpoint, len(s.endpoints)*len(s.ports))
	i, old := 0, n.endpoints
	for j := range s.endpoints {
		ep := &s.endpoints[j]
		for i < len(old) && (old[i].address < ep.address || old[i].address == ep.address && !old[i].names(ep.pod)) {
			e.unlist(n, i)
			i++
		}
		if i == len(old) || old[i].address != ep.address {
			endpoints[j] = e.newListed(n, ep)
			continue
		}
		endpoints[j] = old[i]
		endpoints[j].conditions = ep.conditions
		endpoints[j].stale = old[i].stale || old[i].conditions != ep.conditions || !samePorts
		if from, to := n.of(i); samePorts {
			copy(built[j*len(s.ports):], n.built[from:to])
		}
		i++
	}
	for ; i < len(old); i++ {
		e.unlist(n, i)
	}
	n.ports, n.endpoints, n.built = s.ports, endpoints, built
	e.batch.rebuildSlice(n)
}

func (e *engine) newListed(n *sliceNode, ep *sliceEndpoint) listedEndpoint {
	out := listedEndpoint{address: ep.address, conditions: ep.conditions, stale: true}
	if ep.pod.name != "" {
		out.target = e.podNode(ep.pod)
		out.target.slices = out.target.slices.with(n)
	}
	return out
}

// unlist undoes newListed, and takes away what was built.
func (e *engine) unlist(n *sliceNode, i int) {
	e.setBuilt(n, i, nil)
	if t := n.endpoints[i].target; t != nil {
		t.slices = t.slices.without(n)
		e.batch.released = append(e.batch.released, t)
	}
}

// clearSlice takes away everything that was built.
func (e *engine) clearSlice(n *sliceNode) {
	for i := range n.endpoints {
		e.setBuilt(n, i, nil)
	}
}

// setBuilt puts endpoints, one for each port, in the place of those that were built
// of a listed endpoint; nil if it has none.
func (e *engine) setBuilt(n *sliceNode, i int, next []*registry.Endpoint) {
	from, to := n.of(i)
	built := n.built[from:to]
	if len(built) == 0 || slices.Equal(built, next) || built[0] == nil && next == nil {
		return
	}
	for p, old := range built {
		if old != nil {
			e.touch(n.host, keyOf(old))
		}
		if next != nil && next[p] != old && (old == nil || keyOf(old) != keyOf(next[p])) {
			e.touch(n.host, keyOf(next[p]))
		}
	}
	// The addresses are the same on all ports.
	old, curr := built[0], (*registry.Endpoint)(nil)
	if next == nil {
		clear(built)
	} else {
		curr = next[0]
		copy(built, next)
	}
	if old == nil || curr == nil || !slices.Equal(old.Addresses, curr.Addresses) {
		e.locateEndpoint(n, old, curr)
	}
}
