// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"maps"
	"slices"
	"strings"

	"github.com/pilotkit/pilotkit/registry"
)

// batch is what some changes of objects affect. First the objects are replaced,
// which notes what has to be looked at; then that is computed, in the order in
// which one thing depends on another: pods, services, endpoints of slices,
// endpoints of workloads, hosts, gateways.
type batch struct {
	hosts  []*host
	pods   []*podNode
	slices []*sliceNode
	// released are pods that a slice names no more, forget hosts that lost a slice.
	released []*podNode
	forget   []*host
	// gateways: they may differ; nodes: because of a node. networks: the network of
	// everything may.
	gateways, nodes, networks bool
	// otherwise: something else than nodes changed.
	otherwise bool

	// What is to be reported.

	services        []serviceChange
	workloads       []workloadChange
	proxies         map[string]struct{}
	gatewaysChanged bool
}

type serviceChange struct {
	prev, curr *registry.Service
	event      registry.Event
}

// workloadChange is the change of a pod, as handlers see it; nil for none.
type workloadChange struct{ prev, curr *registry.WorkloadInstance }

func (b *batch) reset() {
	*b = batch{proxies: map[string]struct{}{}}
}

// touch makes a host part of the batch.
func (b *batch) touch(h *host) {
	if !h.dirty {
		h.dirty, h.before, h.objectBefore = true, h.view, h.object
		b.hosts = append(b.hosts, h)
	}
}

// remodel makes the batch look at the model of a service.
func (b *batch) remodel(h *host) {
	b.touch(h)
	h.remodeled = true
}

// repod makes the batch look at a pod.
func (b *batch) repod(n *podNode) {
	if !n.dirty {
		n.dirty, n.before = true, n.state
		b.pods = append(b.pods, n)
	}
}

// rebuild makes the batch look at the endpoints of a slice.
func (b *batch) rebuild(n *sliceNode) {
	if !n.dirty {
		n.dirty = true
		b.slices = append(b.slices, n)
	}
}

// compute brings everything that the batch looks at up to date.
func (e *engine) compute() {
	b := &e.batch
	for _, n := range b.pods {
		e.computePod(n)
	}
	for _, h := range b.hosts {
		if h.remodeled {
			e.computeModel(h)
		}
	}
	for _, n := range b.slices {
		n.dirty = false
		e.buildSlice(n)
	}
	for _, h := range b.hosts {
		if h.reselect {
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
	e.noteWorkloads()
}

// computeModel makes the model of a service again. One that is equal to what
// readers know is not put in its place.
func (e *engine) computeModel(h *host) {
	if h.object == nil {
		h.view = nil
	} else {
		model := e.modelOf(h.object)
		if h.before != nil && h.before.service.Equal(model) && h.before.service.CreationTime.Equal(model.CreationTime) {
			model = h.before.service
		}
		view := &hostView{object: h.object, service: model}
		if h.before != nil {
			view.endpoints = h.before.endpoints
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

// completeHost makes the view that readers are going to see, and notes the change
// of the service.
func (e *engine) completeHost(h *host) {
	endpoints := h.complete(e)
	if h.view != nil && len(h.changes) > 0 {
		h.view = &hostView{object: h.view.object, service: h.view.service, endpoints: endpoints}
	}
	if h.view == nil {
		e.hosts.Delete(h.hostname)
	} else if h.view != h.before {
		e.hosts.Set(h.hostname, h.view)
	}
	e.noteService(h)
}

// noteService notes a change that handlers are to see. A service that is exported
// to nobody does not exist for them, but becoming one is an update.
func (e *engine) noteService(h *host) {
	prev, curr := h.before, h.view
	switch {
	case prev == nil && curr == nil:
	case prev == nil:
		if !curr.object.hidden() {
			e.batch.services = append(e.batch.services, serviceChange{nil, curr.service, registry.EventAdd})
		}
	case curr == nil:
		if !prev.object.hidden() {
			e.batch.services = append(e.batch.services, serviceChange{nil, prev.service, registry.EventDelete})
		}
	case prev.object.hidden() && curr.object.hidden():
	case prev.service != curr.service || !sameTargets(prev.object, curr.object):
		e.batch.services = append(e.batch.services, serviceChange{prev.service, curr.service, registry.EventUpdate})
	}
}

// noteWorkloads notes the changes of pods that handlers and proxies are to see.
func (e *engine) noteWorkloads() {
	b := &e.batch
	slices.SortFunc(b.pods, func(m, n *podNode) int { return m.key.compare(n.key) })
	for _, n := range b.pods {
		prev, curr := e.instanceOf(n.before), e.instanceOf(n.state)
		if curr != nil && (prev == nil || prev.Endpoint.Address() != curr.Endpoint.Address() ||
			!n.before.object.labels.Equal(n.state.object.labels)) {
			b.proxies[curr.Endpoint.Address()] = struct{}{}
		}
		if prev == nil && curr == nil || prev != nil && curr != nil && prev.Equal(curr) {
			continue
		}
		b.workloads = append(b.workloads, workloadChange{prev, curr})
	}
}

// instanceOf returns a pod as handlers see it; nil if they do not.
func (e *engine) instanceOf(s *podState) *registry.WorkloadInstance {
	if s == nil || !s.object.usable() {
		return nil
	}
	p := s.object
	addresses := p.addresses
	if !e.options.DualStack {
		addresses = addresses[:1:1]
	}
	return &registry.WorkloadInstance{
		Cluster: e.options.ClusterID, Kind: registry.Pod, Namespace: p.namespace, Name: p.name, PortMap: p.portMap(),
		Endpoint: &registry.Endpoint{
			Addresses: addresses, HealthStatus: registry.Healthy, WorkloadName: p.workload, Shared: s.attributes,
		},
	}
}

// end makes the engine ready for the next batch.
func (e *engine) end() {
	for _, n := range e.batch.pods {
		n.before, n.dirty = nil, false
	}
	for _, n := range append(e.batch.pods, e.batch.released...) {
		e.drop(n)
	}
	hosts := e.batch.hosts
	for _, h := range hosts {
		h.clear()
	}
	for _, h := range append(slices.Clone(hosts), e.batch.forget...) {
		e.dropHost(h)
	}
	e.batch.reset()
}

// spaceNames returns the names of all namespaces that anything is known of.
func (e *engine) spaceNames() []string { return slices.Sorted(maps.Keys(e.spaces)) }
