// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"maps"
	"slices"
	"strings"

	"github.com/pilotkit/pilotkit/registry"
)

// podState is a pod with what is computed of it. It is immutable, but for the
// node, which only the engine uses.
type podState struct {
	object     *pod
	attributes *registry.EndpointAttributes
	podNode    *podNode
}

// podNode is the place of a pod in the engine. It exists as long as the pod does,
// or a slice names it.
type podNode struct {
	key   objectKey
	state *podState // nil: the pod does not exist
	// before is the state that readers and handlers know, as long as the pod is part
	// of the batch.
	before *podState
	dirty  bool
	// slices are those with an endpoint whose target is the pod, once for each.
	slices []*sliceNode
	// node is where the pod runs, and position its place there.
	node     *nodeState
	position int32
}

// nodeState is a node and the pods on it, known or not.
type nodeState struct {
	name   string
	object *node // nil: not known
	pods   []*podNode
}

func (n *nodeState) locality() string {
	if n == nil || n.object == nil {
		return ""
	}
	return n.object.locality
}

// podNode returns the place of a pod, a new one if there is none.
func (e *engine) podNode(k objectKey) *podNode {
	if s, ok := e.pods.Get(k); ok {
		return s.podNode
	}
	n := e.absent[k]
	if n == nil {
		n = &podNode{key: k}
		e.absent[k] = n
	}
	return n
}

// drop forgets an absent pod that no slice names.
func (e *engine) drop(n *podNode) {
	if n.state == nil && len(n.slices) == 0 {
		delete(e.absent, n.key)
	}
}

// putPod takes the state of a pod; nil if it does not exist.
func (e *engine) putPod(k objectKey, p *pod) {
	n := e.podNode(k)
	if p == nil && n.state == nil || p != nil && n.state != nil && samePod(p, n.state.object) {
		if p == nil {
			e.drop(n)
		}
		return
	}
	e.batch.repod(n)
	if n.state != nil {
		e.leaveNode(n)
		e.labels.release(n.state.object.labels)
	}
	if p == nil {
		n.state = nil
		e.pods.Delete(k)
		e.absent[k] = n
		return
	}
	p.labels = e.labels.acquire(p.labels)
	delete(e.absent, k)
	e.enterNode(n, p.node)
	n.state = &podState{object: p, podNode: n}
	e.pods.Set(n.key, n.state)
}

func (e *engine) nodeState(name string) *nodeState {
	n := e.nodes[name]
	if n == nil {
		n = &nodeState{name: name}
		e.nodes[name] = n
	}
	return n
}

func (e *engine) enterNode(n *podNode, name string) {
	if name == "" {
		return
	}
	n.node = e.nodeState(name)
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

func (e *engine) dropNode(n *nodeState) {
	if n.object == nil && len(n.pods) == 0 {
		delete(e.nodes, n.name)
	}
}

func (e *engine) applyNode(name string, o *node) {
	n := e.nodeState(name)
	old := n.object
	locality := n.locality()
	n.object = o
	if n.locality() != locality {
		for _, p := range n.pods {
			e.batch.repod(p)
		}
	}
	if externalChange(old, o) {
		e.batch.nodes = true
		for h := range e.nodeHosts {
			e.batch.remodel(h)
		}
	}
	e.dropNode(n)
}

// externalChange reports whether the address of a node port service may differ.
func externalChange(a, b *node) bool {
	if a == nil || b == nil {
		return (a == nil || a.address == "") != (b == nil || b.address == "")
	}
	return a.address != b.address || a.address != "" && !a.labels.Equal(b.labels)
}

// computePod computes the attributes of a pod, and makes the batch look at what
// depends on it.
func (e *engine) computePod(n *podNode) {
	if n.state != nil {
		s := &podState{object: n.state.object, podNode: n, attributes: e.attributesOf(n)}
		if b := n.before; b != nil && b.attributes.Equal(s.attributes) {
			s.attributes = b.attributes
			if b.object == s.object {
				n.state = b
				e.pods.Set(n.key, b)
				return
			}
		}
		n.state = s
		e.pods.Set(n.key, s)
	}
	e.locatePod(n)
	if !sameForEndpoints(n.before, n.state) {
		for _, s := range n.slices {
			e.batch.rebuild(s)
		}
		for _, s := range []*podState{n.before, n.state} {
			for _, a := range s.claimed() {
				for _, slice := range e.untargeted[spaceAddress{n.key.namespace, a}] {
					e.batch.rebuild(slice)
				}
			}
		}
	}
	e.drop(n)
}

// claimed returns the addresses under which a pod is found: those of a usable one.
func (s *podState) claimed() []string {
	if s == nil || !s.object.usable() {
		return nil
	}
	return s.object.addresses
}

// sameForEndpoints reports whether endpoints would be the same.
func sameForEndpoints(a, b *podState) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.attributes == b.attributes && a.object.workload == b.object.workload && a.object.flags == b.object.flags &&
		a.object.created == b.object.created && slices.Equal(a.object.addresses, b.object.addresses)
}

// podList are the pods that have an address; nearly always one.
type podList struct {
	first *podNode
	more  *[]*podNode // nil if there is one
}

func (l podList) all() []*podNode {
	switch {
	case l.first == nil:
		return nil
	case l.more == nil:
		return []*podNode{l.first}
	default:
		return append([]*podNode{l.first}, *l.more...)
	}
}

func podListOf(all []*podNode) podList {
	switch len(all) {
	case 0:
		return podList{}
	case 1:
		return podList{first: all[0]}
	default:
		more := all[1:]
		return podList{all[0], &more}
	}
}

func (l podList) with(n *podNode) podList { return podListOf(append(l.all(), n)) }

func (l podList) without(n *podNode) podList { return podListOf(without(l.all(), n)) }

// locatePod makes a pod be found by its addresses.
func (e *engine) locatePod(n *podNode) {
	old, curr := n.before.claimed(), n.state.claimed()
	if slices.Equal(old, curr) {
		return
	}
	for _, a := range old {
		l, _ := e.podsAt.Get(a)
		if l = l.without(n); l.first == nil {
			e.podsAt.Delete(a)
		} else {
			e.podsAt.Set(a, l)
		}
	}
	for _, a := range curr {
		l, _ := e.podsAt.Get(a)
		e.podsAt.Set(a, l.with(n))
	}
}

// attributesOf returns what the endpoints of a pod have in common.
func (e *engine) attributesOf(n *podNode) *registry.EndpointAttributes {
	p := n.state.object
	locality := localityFromLabel(firstOf(p.labels, labelLocality, labelLegacyLocality))
	if locality == "" {
		locality = n.node.locality()
	}
	primary := ""
	if len(p.addresses) > 0 {
		primary = p.addresses[0]
	}
	network := e.networkOf(primary, p.labels)
	hostname, subdomain := p.hostname()
	tls := p.labels[labelTLSMode]
	if tls == "" {
		tls = "disabled"
	}
	return &registry.EndpointAttributes{
		Labels:         e.augment(p.labels, locality, p.node, network),
		ServiceAccount: identityCache(e, p), Network: network, Locality: locality, ClusterID: e.options.ClusterID,
		SendUnhealthyEndpoints: true, TLSMode: tls, Namespace: p.namespace,
		HostName: hostname, SubDomain: subdomain, NodeName: p.node,
	}
}

func identityCache(e *engine, p *pod) string {
	return canonical(identity(e.mesh.trustDomain, p.namespace, p.account))
}

// augment returns labels with those of the topology; what is not known is left
// out, and so is an empty label of the network.
func (e *engine) augment(labels registry.Labels, locality, node, network string) registry.Labels {
	region, zone, subzone := splitLocality(locality)
	added := [...]struct{ key, value string }{
		{labelRegion, region},
		{labelZone, zone},
		{labelSubzone, subzone},
		{labelHostname, node},
		{labelCluster, string(e.options.ClusterID)},
		{labelNetwork, network},
	}
	// A map that is made too large is twice as large, and there is one for each pod.
	size := len(labels)
	for _, l := range added {
		if _, own := labels[l.key]; l.value != "" && !own {
			size++
		}
	}
	out := make(registry.Labels, size)
	maps.Copy(out, labels)
	for _, l := range added {
		if l.value != "" {
			out[l.key] = l.value
		}
	}
	if network == "" {
		delete(out, labelNetwork)
	}
	return out
}

// labelTable keeps one copy of equal labels, and counts its users.
type labelTable map[string]*sharedLabels

type sharedLabels struct {
	labels registry.Labels
	users  int
}

func labelKey(labels registry.Labels) string {
	keys := make([]string, 0, len(labels))
	size := 0
	for k, v := range labels {
		keys = append(keys, k)
		size += len(k) + len(v) + 2
	}
	slices.Sort(keys)
	var b strings.Builder
	b.Grow(size)
	for _, k := range keys {
		b.WriteString(k)
		b.WriteByte(0)
		b.WriteString(labels[k])
		b.WriteByte(0)
	}
	return b.String()
}

func (t labelTable) acquire(labels registry.Labels) registry.Labels {
	k := labelKey(labels)
	s := t[k]
	if s == nil {
		s = &sharedLabels{labels: labels}
		t[k] = s
	}
	s.users++
	return s.labels
}

func (t labelTable) release(labels registry.Labels) {
	k := labelKey(labels)
	if s := t[k]; s != nil {
		if s.users--; s.users == 0 {
			delete(t, k)
		}
	}
}
