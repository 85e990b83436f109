// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"slices"

	"github.com/pilotkit/pilotkit/registry"
)

// applyWorkload applies a workload of another registry.
func (e *engine) applyWorkload(w *registry.WorkloadInstance, deleted bool) {
	k := w.Key()
	old := e.workloads[k]
	// As in Istio, no service selects a workload without labels.
	if deleted || w.Namespace == "" || len(w.Endpoint.Attributes().Labels) == 0 {
		w = nil
	}
	if old == nil && w == nil || old != nil && w != nil && old.Equal(w) {
		return
	}
	if old != nil {
		e.reselectFor(old)
		e.forgetWorkload(k, old)
	}
	if w != nil {
		e.keepWorkload(k, w)
		e.reselectFor(w)
	}
}

func (e *engine) keepWorkload(k registry.WorkloadKey, w *registry.WorkloadInstance) {
	e.workloads[k] = w
	for key, value := range w.Endpoint.Attributes().Labels {
		p := labelPair{w.Namespace, key, value}
		if e.byLabel[p] == nil {
			e.byLabel[p] = map[registry.WorkloadKey]*registry.WorkloadInstance{}
		}
		e.byLabel[p][k] = w
	}
	for _, a := range w.Endpoint.Addresses {
		l, _ := e.workloadsAt.Get(a)
		e.workloadsAt.Set(a, append(slices.Clip(l), w))
	}
}

func (e *engine) forgetWorkload(k registry.WorkloadKey, w *registry.WorkloadInstance) {
	delete(e.workloads, k)
	for key, value := range w.Endpoint.Attributes().Labels {
		p := labelPair{w.Namespace, key, value}
		if delete(e.byLabel[p], k); len(e.byLabel[p]) == 0 {
			delete(e.byLabel, p)
		}
	}
	for _, a := range w.Endpoint.Addresses {
		l, _ := e.workloadsAt.Get(a)
		if l = without(l, w); l == nil {
			e.workloadsAt.Delete(a)
		} else {
			e.workloadsAt.Set(a, l)
		}
	}
}

// reselectFor marks the services that select a workload.
func (e *engine) reselectFor(w *registry.WorkloadInstance) {
	for _, h := range e.selecting(w.Namespace, w.Endpoint.Attributes().Labels) {
		e.batch.touch(h).reselect = true
	}
}

// indexSelector indexes a service under one label of its selector: the one with the fewest
// services, because many services may share the others.
func (e *engine) indexSelector(h *host) {
	was := h.indexed
	if h.object != nil && (registry.Labels{was.key: was.value}).SubsetOf(h.object.selector) {
		return
	}
	if was != (labelPair{}) {
		l, _ := e.selectors.Get(was)
		if l = without(l, h); l == nil {
			e.selectors.Delete(was)
		} else {
			e.selectors.Set(was, l)
		}
	}
	h.indexed = labelPair{}
	if h.object == nil || len(h.object.selector) == 0 {
		return
	}
	var list []*host
	for key, value := range h.object.selector {
		pair := labelPair{h.namespace, key, value}
		l, _ := e.selectors.Get(pair)
		if h.indexed == (labelPair{}) || len(l) < len(list) {
			h.indexed, list = pair, l
		}
	}
	e.selectors.Set(h.indexed, append(slices.Clip(list), h))
}

// candidatesOf returns the workloads with one label of a service's selector: the label with the
// fewest workloads.
func (e *engine) candidatesOf(s *service) map[registry.WorkloadKey]*registry.WorkloadInstance {
	var out map[registry.WorkloadKey]*registry.WorkloadInstance
	first := true
	for key, value := range s.selector {
		if l := e.byLabel[labelPair{s.namespace, key, value}]; first || len(l) < len(out) {
			out, first = l, false
		}
	}
	return out
}

// selecting returns the hosts whose services select labels, in unspecified order.
func (e *engine) selecting(namespace string, labels registry.Labels) []*host {
	var out []*host
	for key, value := range labels {
		l, _ := e.selectors.Get(labelPair{namespace, key, value})
		for _, h := range l {
			if h.object.selector.SubsetOf(labels) {
				out = append(out, h)
			}
		}
	}
	return out
}

// buildForeign rebuilds the endpoints of the workloads that a service selects.
func (e *engine) buildForeign(h *host) {
	next := map[registry.WorkloadKey][]*registry.Endpoint{}
	if s := h.object; h.reported() && s.resolution() == registry.ClientSideLB {
		for k, w := range e.candidatesOf(s) {
			if s.selector.SubsetOf(w.Endpoint.Attributes().Labels) {
				next[k] = workloadEndpoints(s, w)
			}
		}
	}
	for k, old := range h.foreign {
		curr := next[k]
		for i, ep := range curr {
			if i < len(old) && ep.Equal(old[i]) {
				curr[i] = old[i]
			}
		}
		for _, ep := range old {
			if !slices.Contains(curr, ep) {
				h.work.removed = append(h.work.removed, ep)
			}
		}
	}
	for k, curr := range next {
		for _, ep := range curr {
			if !slices.Contains(h.foreign[k], ep) {
				h.work.added = append(h.work.added, ep)
			}
		}
	}
	if h.foreign = next; len(next) == 0 {
		h.foreign = nil
	}
}

// workloadEndpoints returns the endpoints of a workload for the ports of a service that selects it,
// by Istio's rules. The port is the workload's port with the service port's name, if there is one,
// instead of a numeric target port. A named target port is looked up in the workload; if the
// workload lacks it, the endpoint is omitted. Without a target port it is the service port's
// number.
func workloadEndpoints(s *service, w *registry.WorkloadInstance) []*registry.Endpoint {
	var out []*registry.Endpoint
	for _, p := range s.ports {
		number := uint32(0)
		switch {
		case p.target != 0:
			number = p.target
			if n := w.PortMap[p.name]; n != 0 && p.name != "" {
				number = n
			}
		case p.targetName != "":
			if number = w.PortMap[p.targetName]; number == 0 {
				continue
			}
		default:
			number = p.number
		}
		ep := *w.Endpoint
		ep.EndpointPort, ep.ServicePort, ep.ServicePortName = number, 0, p.name
		out = append(out, &ep)
	}
	return out
}
