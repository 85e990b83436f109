// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"slices"

	"github.com/pilotkit/pilotkit/internal/cow"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// host is the place of a service in the engine. It exists as long as the service
// does, or a slice is of it.
type host struct {
	objectKey
	hostname registry.Hostname
	object   *service // nil: no such service
	slices   []*sliceNode
	// view is what readers see; nil if there is no service.
	view *hostView

	// foreign are the endpoints of workloads.
	foreign map[registry.WorkloadKey][]*registry.Endpoint
	// indexed is the label of the selector by which the service is found; the zero
	// pair if it has no selector.
	indexed labelPair
	// work is what is changing; nil unless the host is part of the batch.
	work *hostWork
}

// hostWork is the part of a host in a batch.
type hostWork struct {
	// before is the view that readers know.
	before *hostView
	// remodeled: the model has to be made again. rework: the endpoints of all slices,
	// as they depend on the service. reselect: those of workloads.
	remodeled, rework, reselect bool
	// touched are the keys that may have another endpoint.
	touched []touched
	// contested are those of them that were touched when several slices had the address.
	contested map[memberKey]struct{}
	// added and removed are endpoints of workloads.
	added, removed []*registry.Endpoint
	changes        []xdsupdate.EndpointChange
}

// needsRework reports whether the endpoints of all slices have to be made again.
func (w *hostWork) needsRework() bool { return w != nil && w.rework }

// hostView is what readers see of a service. It is immutable.
type hostView struct {
	object    *service
	service   *registry.Service
	endpoints cow.Sorted[*registry.Endpoint]
}

// host returns the place of a service, a new one if there is none.
func (e *engine) host(k objectKey) *host {
	s := e.space(k.namespace)
	h := s.hosts[k.name]
	if h == nil {
		h = &host{objectKey: k, hostname: e.hostnameOf(k)}
		s.hosts[k.name] = h
	}
	return h
}

// dropHost forgets a host that has neither a service nor slices.
func (e *engine) dropHost(h *host) {
	if h.object == nil && len(h.slices) == 0 && h.work == nil {
		delete(e.space(h.namespace).hosts, h.name)
	}
}

// reported: the updater knows the endpoints of the service.
func (h *host) reported() bool { return h.object != nil && !h.object.hidden() }

// putService takes the state of a service; nil if it does not exist.
func (e *engine) putService(k objectKey, s *service) {
	h := e.host(k)
	old := h.object
	if old == nil && s == nil || old != nil && s != nil && sameService(old, s) {
		e.dropHost(h)
		return
	}
	work := e.batch.touch(h)
	h.object = s
	if dependencies(old) != dependencies(s) {
		work.rework = true
		for _, n := range h.slices {
			e.batch.rebuild(n)
		}
	}
	work.remodeled, work.reselect = true, true
	e.indexSelector(h)
	setMember(e.nodeHosts, h, s != nil && s.nodePorts())
}

// dependency is what the endpoints of slices depend on.
type dependency struct{ reported, sessions, dualStack bool }

func dependencies(s *service) dependency {
	if s == nil {
		return dependency{}
	}
	return dependency{!s.hidden(), s.sessions(), s.dualStack()}
}

func setMember(set map[*host]struct{}, h *host, is bool) {
	if is {
		set[h] = struct{}{}
	} else {
		delete(set, h)
	}
}

// completeEndpoints computes the next list of endpoints and the changes that lead to it.
func (e *engine) completeEndpoints(h *host) cow.Sorted[*registry.Endpoint] {
	w := h.work
	var list cow.Sorted[*registry.Endpoint]
	if w.before != nil {
		list = w.before.endpoints
	}
	slices.SortStableFunc(w.touched, func(a, b touched) int { return a.compare(b.memberKey) })
	for i, t := range w.touched {
		if i > 0 && w.touched[i-1].memberKey == t.memberKey {
			continue
		}
		var curr *registry.Endpoint
		if winner := e.elect(h, t.memberKey); winner.slice != nil {
			curr = adopt(winner, t.former)
		}
		if curr != t.former {
			w.changes = append(w.changes, xdsupdate.EndpointChange{Old: t.former, New: curr})
		}
	}
	w.changes = append(w.changes, pair(w.removed, w.added)...)
	if len(w.changes) == 0 {
		return list
	}
	slices.SortFunc(w.changes, compareChanges)
	if len(w.changes) >= max(list.Len(), 8) {
		return rebuilt(list, w.changes)
	}
	editor := list.Edit(len(w.changes))
	for _, c := range w.changes {
		editEndpoint(editor, c)
	}
	return editor.Sorted()
}

func editEndpoint(editor *cow.Editor[*registry.Endpoint], c xdsupdate.EndpointChange) {
	switch {
	case c.Old == nil:
		editor.Insert(registry.CompareEndpoints, c.New)
	case c.New == nil:
		editor.Delete(registry.CompareEndpoints, c.Old, identical)
	default:
		editor.Replace(registry.CompareEndpoints, c.Old, c.New, identical)
	}
}

// rebuilt returns the list after changes that leave little as it is.
func rebuilt(list cow.Sorted[*registry.Endpoint], changes []xdsupdate.EndpointChange) cow.Sorted[*registry.Endpoint] {
	gone := make(map[*registry.Endpoint]struct{}, len(changes))
	out := make([]*registry.Endpoint, 0, list.Len()+len(changes))
	for _, c := range changes {
		if c.Old != nil {
			gone[c.Old] = struct{}{}
		}
		if c.New != nil {
			out = append(out, c.New)
		}
	}
	for ep := range list.All() {
		if _, ok := gone[ep]; !ok {
			out = append(out, ep)
		}
	}
	slices.SortFunc(out, registry.CompareEndpoints)
	return cow.Adopt(out)
}

// pair makes one change of an endpoint that leaves and one that takes its place.
func pair(removed, added []*registry.Endpoint) []xdsupdate.EndpointChange {
	var out []xdsupdate.EndpointChange
	for i := range max(len(removed), len(added)) {
		var c xdsupdate.EndpointChange
		if i < len(removed) {
			c.Old = removed[i]
		}
		if i < len(added) {
			c.New = added[i]
		}
		out = append(out, c)
	}
	return out
}

// compareChanges makes the order of changes the same everywhere.
func compareChanges(a, b xdsupdate.EndpointChange) int {
	return registry.CompareEndpoints(changed(a), changed(b))
}

func changed(c xdsupdate.EndpointChange) *registry.Endpoint {
	if c.New != nil {
		return c.New
	}
	return c.Old
}

func identical(a, b *registry.Endpoint) bool { return a == b }
