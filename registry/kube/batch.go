// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"maps"
	"slices"
	"strings"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/internal/publish"
)

// batch collects the effects of some changes of objects. First the objects are replaced, and the
// affected parts are marked. Then the parts are computed in the order of their dependencies: pods,
// services, endpoints of slices, endpoints of workloads, hosts, gateways.
type batch struct {
	hosts  []*host
	pods   []*podNode
	slices []*sliceNode
	// released are the pods that a slice does not reference any more, forget the hosts that lost a
	// slice.
	released []*podNode
	forget   []*host
	// spaces are the names of the namespaces with changed objects. Names of nodes are among them.
	spaces []string
	// gateways is set if gateways may change, nodes if that is because of a node. networks is set
	// if the network of every endpoint may change.
	gateways, nodes, networks bool
	// otherwise is set if objects other than nodes changed.
	otherwise bool

	// The fields below are the results to announce. The service changes in change are added while
	// the batch is computed, the rest after it.

	change          publish.Change
	workloads       []podChange
	proxies         []string
	gatewaysChanged bool
}

// podChange is a change of a pod for handlers. A nil entry means that the pod does not exist.
type podChange struct{ prev, curr *podEntry }

func (b *batch) reset() {
	b.change.Reset()
	*b = batch{
		hosts: publish.Emptied(b.hosts), pods: publish.Emptied(b.pods), slices: publish.Emptied(b.slices),
		released: publish.Emptied(b.released), forget: publish.Emptied(b.forget),
		spaces: publish.Emptied(b.spaces),
		change: b.change, workloads: publish.Emptied(b.workloads), proxies: publish.Emptied(b.proxies),
	}
}

// touch adds a host to the batch.
func (b *batch) touch(h *host) *hostWork {
	if h.work == nil {
		h.work = &hostWork{before: h.view}
		b.hosts = append(b.hosts, h)
	}
	return h.work
}

// rebuildService marks the model of a service.
func (b *batch) rebuildService(h *host) {
	b.touch(h).rebuild = true
}

// rebuildPod marks a pod.
func (b *batch) rebuildPod(n *podNode) {
	if !n.dirty {
		n.dirty, n.before = true, n.pod()
		b.pods = append(b.pods, n)
	}
}

// rebuildSlice marks the endpoints of a slice.
func (b *batch) rebuildSlice(n *sliceNode) {
	if !n.dirty {
		n.dirty = true
		b.slices = append(b.slices, n)
	}
}

// compute recomputes the marked parts.
func (e *engine) compute() {
	b := &e.batch
	for _, n := range b.pods {
		e.computePod(n)
	}
	for _, h := range b.hosts {
		if h.work.rebuild {
			e.computeModel(h)
		}
	}
	for _, n := range b.slices {
		e.buildSlice(n)
	}
	for _, h := range b.hosts {
		if h.work.reselect {
			e.buildForeign(h)
		}
	}
	slices.SortFunc(b.hosts, func(g, h *host) int { return strings.Compare(string(g.hostname), string(h.hostname)) })
	for _, h := range b.hosts {
		e.completeHost(h)
	}
	if b.gateways {
		e.computeGateways()
	}
	e.notePods()
}

// computeModel recomputes the model of a service. A model that equals the published one is dropped.
func (e *engine) computeModel(h *host) {
	before := h.work.before
	if h.object == nil {
		h.view = nil
	} else {
		model := e.modelOf(h.object)
		if before != nil && before.service.Equal(model) && before.service.CreationTime.Equal(model.CreationTime) {
			model = before.service
		}
		view := &hostView{object: h.object, service: model}
		if before != nil {
			view.endpoints = before.endpoints
		}
		h.view = view
	}
	if is := h.object != nil && e.mayBeGateway(h); is || isMember(e.gatewayHosts, h) {
		setMember(e.gatewayHosts, h, is)
		e.batch.gateways = true
	}
}

func isMember(set map[*host]struct{}, h *host) bool {
	_, ok := set[h]
	return ok
}

// completeHost builds the host's next view for readers, and adds the change of the service.
func (e *engine) completeHost(h *host) {
	endpoints := e.completeEndpoints(h)
	if h.view != nil && len(h.work.changes) > 0 {
		h.view = &hostView{object: h.view.object, service: h.view.service, endpoints: endpoints}
	}
	if h.view == nil {
		e.hosts.Delete(h.hostname)
	} else if h.view != h.work.before {
		e.hosts.Set(h.hostname, h.view)
	}
	e.noteService(h)
}

// noteService adds a change for service handlers. A service that is exported to no namespace does
// not exist for them, but becoming one is an update.
func (e *engine) noteService(h *host) {
	prev, curr := h.work.before, h.view
	switch {
	case prev == nil && curr == nil:
	case prev == nil:
		if !curr.object.hidden() {
			e.noteChange(nil, curr.service, registry.EventAdd)
		}
	case curr == nil:
		if !prev.object.hidden() {
			e.noteChange(nil, prev.service, registry.EventDelete)
		}
	case prev.object.hidden() && curr.object.hidden():
	case h.changedService():
		e.noteChange(prev.service, curr.service, registry.EventUpdate)
	}
}

func (e *engine) noteChange(prev, curr *registry.Service, event registry.Event) {
	c := &e.batch.change
	c.ServiceChanges = append(c.ServiceChanges, publish.ServiceChange{Prev: prev, Curr: curr, Event: event})
}

// notePods adds the changes of pods for handlers and proxies.
func (e *engine) notePods() {
	b := &e.batch
	slices.SortFunc(b.pods, func(m, n *podNode) int { return m.key().compare(n.key()) })
	for _, n := range b.pods {
		prev, curr := shown(n.before), shown(n.pod())
		if prev == nil && curr == nil {
			continue
		}
		if curr != nil && (prev == nil || prev.Value.addresses[0] != curr.Value.addresses[0] ||
			!prev.Value.template.labels.Equal(curr.Value.template.labels) ||
			prev.Value.template.redirection != curr.Value.template.redirection) {
			b.proxies = append(b.proxies, curr.Value.addresses[0])
		}
		if prev == nil || curr == nil || !e.sameInstance(prev, curr) {
			b.workloads = append(b.workloads, podChange{prev, curr})
		}
	}
	slices.Sort(b.proxies)
	b.proxies = slices.Compact(b.proxies)
}

// end prepares the engine for the next batch.
func (e *engine) end() {
	b := &e.batch
	for _, n := range b.pods {
		n.before, n.dirty = nil, false
	}
	for _, h := range b.hosts {
		h.work = nil
	}
	for _, n := range b.slices {
		n.dirty = false
	}
	for _, nodes := range [][]*podNode{b.pods, b.released} {
		for _, n := range nodes {
			e.drop(n)
		}
	}
	for _, hosts := range [][]*host{b.hosts, b.forget} {
		for _, h := range hosts {
			e.dropHost(h)
		}
	}
	for _, name := range b.spaces {
		e.dropSpace(name)
	}
	b.reset()
}

// spaceNames returns the names of all namespaces in the engine.
func (e *engine) spaceNames() []string { return slices.Sorted(maps.Keys(e.spaces)) }
