// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"slices"

	"github.com/pilotkit/pilotkit/registry"
)

// sliceNode has the state of a slice in the engine. A slice that moves to another service gets
// another sliceNode.
type sliceNode struct {
	name string
	// host is the service of the slice, nil if it belongs to no service. It never changes.
	host      *host
	ports     []slicePort
	endpoints []listedEndpoint
	// built are the slice's endpoints for the host, ordered by listed endpoint and then by port. A
	// listed endpoint has an endpoint on each port, or none at all: then its elements are nil. The
	// host uses an endpoint unless another one with the same key wins.
	built []*registry.Endpoint
	dirty bool
}

// listedEndpoint is one address of one endpoint of a slice.
type listedEndpoint struct {
	address string
	// target is nil if the endpoint references no pod.
	target     *podNode
	conditions conditions
	// stale is set if the built endpoints belong to other conditions or ports.
	stale bool
}

// names reports whether a pod is the target; the zero key means no target.
func (l *listedEndpoint) names(pod objectKey) bool {
	if l.target == nil {
		return pod.name == ""
	}
	return l.target.key() == pod
}

// service returns the name of the service that the slice belongs to, "" if there is none.
func (n *sliceNode) service() string {
	if n.host == nil {
		return ""
	}
	return n.host.name
}

// read returns the fields that were read of the slice, which is in a namespace.
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

// of returns the range of built for one listed endpoint.
func (n *sliceNode) of(i int) (from, to int) { return i * len(n.ports), (i + 1) * len(n.ports) }

// putSlice sets the current state of a slice; nil if it does not exist.
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

// dropSlice removes a deleted slice from its host.
func (e *engine) dropSlice(n *sliceNode) {
	if n.host == nil {
		return
	}
	e.list(n, &slice{})
	n.host.slices = without(n.host.slices, n)
	e.batch.forget = append(e.batch.forget, n.host)
}

// list replaces the listed endpoints of a slice by those of s. Because both are sorted, one pass
// finds the endpoints that are still listed, and keeps the endpoints built from them. The others
// are removed from the host at once.
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

// unlist reverts newListed, and removes the built endpoints.
func (e *engine) unlist(n *sliceNode, i int) {
	e.setBuilt(n, i, nil)
	if t := n.endpoints[i].target; t != nil {
		t.slices = t.slices.without(n)
		e.batch.released = append(e.batch.released, t)
	}
}

// clearSlice removes all built endpoints.
func (e *engine) clearSlice(n *sliceNode) {
	for i := range n.endpoints {
		e.setBuilt(n, i, nil)
	}
}

// setBuilt replaces the endpoints built from a listed endpoint. There is one for each port; nil
// means none.
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
