// SPDX-License-Identifier: Apache-2.0

package kube

// nodePods is a node and the pods on it. The Node object may be missing.
type nodePods struct {
	name   string
	object *node // nil if the object is missing
	pods   []*podNode
}

func (n *nodePods) locality() string {
	if n == nil || n.object == nil {
		return ""
	}
	return n.object.locality
}

func (e *engine) nodePods(name string) *nodePods {
	n := e.nodes[name]
	if n == nil {
		n = &nodePods{name: name}
		e.nodes[name] = n
	}
	return n
}

func (e *engine) enterNode(n *podNode, name string) {
	if name == "" {
		return
	}
	n.node = e.nodePods(name)
	n.position = int32(len(n.node.pods))
	n.node.pods = append(n.node.pods, n)
}

func (e *engine) leaveNode(n *podNode) {
	at := n.node
	if at == nil {
		return
	}
	last := len(at.pods) - 1
	at.pods[n.position] = at.pods[last]
	at.pods[n.position].position = n.position
	at.pods[last] = nil
	at.pods = at.pods[:last]
	n.node = nil
	e.dropNode(at)
}

func (e *engine) dropNode(n *nodePods) {
	if n.object == nil && len(n.pods) == 0 {
		delete(e.nodes, n.name)
	}
}

func (e *engine) applyNode(name string, o *node) {
	n := e.nodePods(name)
	old := n.object
	locality := n.locality()
	n.object = o
	if n.locality() != locality {
		for _, p := range n.pods {
			e.batch.rebuildPod(p)
		}
	}
	if externalChange(old, o) {
		e.batch.nodes = true
		for h := range e.nodeHosts {
			e.batch.rebuildService(h)
		}
	}
	e.dropNode(n)
}

// externalChange reports whether the address of a node port service may change.
func externalChange(a, b *node) bool {
	if a == nil || b == nil {
		return (a == nil || a.address == "") != (b == nil || b.address == "")
	}
	return a.address != b.address || a.address != "" && !a.labels.Equal(b.labels)
}
