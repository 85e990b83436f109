// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"slices"

	"go.uber.org/atomic"

	"github.com/pilotkit/pilotkit/internal/pmap"
	"github.com/pilotkit/pilotkit/registry"
)

// podEntry is a pod with its computed attributes. It is itself the entry of the map of pods, to
// save memory, because there are very many. It is immutable after publication, except for the
// podNode, which only the engine uses.
type podEntry = pmap.Entry[objectKey, podValue]

type podValue struct {
	podFacts
	// attributes are the attributes that the endpoints of the pod have in common. They are computed
	// before the entry is published.
	attributes *registry.EndpointAttributes
	podNode    *podNode
}

// podNode has the state of a pod in the engine. It exists as long as the pod exists, or a slice
// references it.
type podNode struct {
	// entry is never nil; an entry without a template means that the pod does not exist. Readers
	// use its key, which never changes.
	entry atomic.Pointer[podEntry]
	// before is the published entry while the pod is part of the batch; nil if there is none.
	before *podEntry
	// slices are the slices with endpoints whose target is the pod, once for each such endpoint.
	slices list[*sliceNode]
	// node is the node of the pod, and position the pod's index there.
	node     *nodePods
	position int32
	dirty    bool
}

func (n *podNode) key() objectKey { return n.entry.Load().Key }

// pod returns the entry of the pod, nil if it does not exist.
func (n *podNode) pod() *podEntry {
	if s := n.entry.Load(); s.Value.template != nil {
		return s
	}
	return nil
}

// nodeName returns the name of the node that the pod runs on.
func (n *podNode) nodeName() string {
	if n.node == nil {
		return ""
	}
	return n.node.name
}

// read returns the fields that were read of the pod, which must exist.
func (n *podNode) read() *pod {
	return &pod{objectKey: n.key(), podFacts: n.pod().Value.podFacts, node: n.nodeName()}
}

// podNode returns the node of a pod; it creates one if there is none.
func (e *engine) podNode(k objectKey) *podNode {
	if s := e.pods.Entry(k); s != nil {
		return s.Value.podNode
	}
	n := e.absent[k]
	if n == nil {
		n = &podNode{}
		n.entry.Store(&podEntry{Key: k})
		e.absent[k] = n
	}
	return n
}

// drop drops an absent pod that no slice references.
func (e *engine) drop(n *podNode) {
	if n.pod() == nil && n.slices.empty() {
		delete(e.absent, n.key())
	}
}

// putPod sets the current state of a pod; nil if it does not exist.
func (e *engine) putPod(k objectKey, p *pod) {
	n := e.podNode(k)
	old := n.pod()
	if p == nil && old == nil || p != nil && old != nil && samePod(p, n.read()) {
		e.drop(n)
		return
	}
	e.batch.rebuildPod(n)
	if p == nil {
		e.pods.Delete(k)
		n.entry.Store(&podEntry{Key: k})
		e.absent[k] = n
	} else {
		// Acquire the new template before the old one is released, so that an equal template is
		// kept.
		entry := &podEntry{Key: n.key(), Value: podValue{podFacts: p.podFacts, podNode: n}}
		entry.Value.template = e.templates.acquire(p.template)
		delete(e.absent, k)
		n.entry.Store(entry)
		e.pods.Put(entry)
	}
	if old != nil {
		e.leaveNode(n)
		e.templates.release(old.Value.template)
	}
	if p != nil {
		e.enterNode(n, p.node)
	}
}

// computePod computes the attributes of a pod, and marks the parts that depend on it.
func (e *engine) computePod(n *podNode) {
	if n.pod() != nil && !e.describePod(n) {
		return
	}
	before, now := n.before, n.pod()
	if old, curr := lookupAddresses(before), lookupAddresses(now); !slices.Equal(old, curr) {
		e.locatePod(n, old, curr)
	}
	if sameForEndpoints(before, now) {
		return
	}
	for s := range n.slices.all {
		e.batch.rebuildSlice(s)
	}
	e.rebuildAt(n.key().namespace, lookupAddresses(before))
	e.rebuildAt(n.key().namespace, lookupAddresses(now))
}

// describePod sets the attributes of a pod, and keeps the old ones if they are equal. It reports
// whether the pod differs from the published one.
func (e *engine) describePod(n *podNode) bool {
	attributes := e.attributesOf(n)
	if b := n.before; b != nil && b.Value.attributes.Equal(attributes) {
		attributes = b.Value.attributes
	}
	switch s := n.pod(); {
	case s != n.before:
		s.Value.attributes = attributes
	case s.Value.attributes == attributes:
		return false
	default: // the same object, but its node is in another zone, for example
		next := *s
		next.Value.attributes = attributes
		n.entry.Store(&next)
		e.pods.Put(&next)
	}
	return true
}

// rebuildAt marks the slices of a namespace with endpoints at some addresses, because endpoints
// without a target have the identity of the pod there.
func (e *engine) rebuildAt(namespace string, addresses []string) {
	for _, a := range addresses {
		p, _ := e.holders.Get(a)
		for s := range p.slices.all {
			if s.host.namespace == namespace {
				e.batch.rebuildSlice(s)
			}
		}
	}
}

// lookupAddresses returns the addresses under which a pod is indexed. A pod that is not usable has
// none.
func lookupAddresses(s *podEntry) []string {
	if s == nil || !s.Value.usable() {
		return nil
	}
	return s.Value.addresses
}

// sameForEndpoints reports whether both pods give the same endpoints.
func sameForEndpoints(a, b *podEntry) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Value.attributes == b.Value.attributes && a.Value.template.workload == b.Value.template.workload &&
		a.Value.flags == b.Value.flags && a.Value.created == b.Value.created &&
		slices.Equal(a.Value.addresses, b.Value.addresses)
}
