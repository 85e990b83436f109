// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"maps"
	"slices"

	"github.com/pilotkit/pilotkit/registry"
)

// applyWorkload takes a workload of another registry.
func (e *engine) applyWorkload(w *registry.WorkloadInstance, deleted bool) {
	k := w.Key()
	old := e.workloads[k]
	// As in Istio a workload without labels is selected by nothing.
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

// reselectFor makes the batch look at the services that select a workload.
func (e *engine) reselectFor(w *registry.WorkloadInstance) {
	for _, h := range e.selecting(w.Namespace, w.Endpoint.Attributes().Labels) {
		h.reselect = true
		e.batch.touch(h)
	}
}

// selectorPair is the label of a selector by which it is found; false if there is
// none.
func selectorPair(s *service) (labelPair, bool) {
	if s == nil || len(s.selector) == 0 {
		return labelPair{}, false
	}
	key := slices.Min(slices.Collect(maps.Keys(s.selector)))
	return labelPair{s.namespace, key, s.selector[key]}, true
}

// indexSelector makes a service be found by a label of its selector.
func (e *engine) indexSelector(h *host, old, curr *service) {
	was, had := selectorPair(old)
	is, has := selectorPair(curr)
	if had == has && was == is {
		return
	}
	if had {
		l, _ := e.selectors.Get(was)
		if l = without(l, h); l == nil {
			e.selectors.Delete(was)
		} else {
			e.selectors.Set(was, l)
		}
	}
	if has {
		l, _ := e.selectors.Get(is)
		e.selectors.Set(is, append(slices.Clip(l), h))
	}
}

// selecting returns the hosts whose services select labels, in no order.
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

// buildForeign makes the endpoints of workloads that a service selects as they
// should be now.
func (e *engine) buildForeign(h *host) {
	next := map[registry.WorkloadKey][]*registry.Endpoint{}
	if s := h.object; h.reported() && s.resolution() == registry.ClientSideLB {
		if p, ok := selectorPair(s); ok {
			for k, w := range e.byLabel[p] {
				if s.selector.SubsetOf(w.Endpoint.Attributes().Labels) {
					next[k] = workloadEndpoints(s, w)
				}
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
				h.removed = append(h.removed, ep)
			}
		}
	}
	for k, curr := range next {
		for _, ep := range curr {
			if !slices.Contains(h.foreign[k], ep) {
				h.added = append(h.added, ep)
			}
		}
	}
	if h.foreign = next; len(next) == 0 {
		h.foreign = nil
	}
}

// workloadEndpoints returns the endpoints of a workload for the ports of a
// service that selects it, by Istio's rules: a numeric target port gives way to the
// workload's port of the service port's name; a named one is looked up, and leaves
// the endpoint out if the workload lacks it; without a target port it is the
// service port's number.
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
