// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"slices"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/internal/publish"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// host has the state of a service in the engine. It exists as long as the service exists, or a
// slice belongs to it.
type host struct {
	objectKey
	hostname registry.Hostname
	object   *service // nil if the service does not exist
	slices   []*sliceNode
	// view is the published view; nil if there is no service.
	view *hostView

	// foreign are the endpoints of workloads of other registries.
	foreign map[registry.WorkloadKey][]*registry.Endpoint
	// indexed is the label of the selector under which the service is indexed, the zero pair if it
	// has no selector.
	indexed labelPair
	// work is the change in progress, nil unless the host is part of the batch.
	work *hostWork
}

// hostWork is the part of a host in a batch.
type hostWork struct {
	// before is the published view.
	before *hostView
	// rebuild is set if the model has to be recomputed, rework if the endpoints of all slices have
	// to be, because they depend on the service, and reselect if the endpoints of workloads have to
	// be.
	rebuild, rework, reselect bool
	// touched are the keys whose endpoint may change.
	touched []touched
	// contested are the keys that were touched while several slices had the address.
	contested map[memberKey]struct{}
	// added and removed are the endpoints that enter and leave the list: first the endpoints of
	// workloads, then the results for touched. changes is computed from them.
	added, removed []*registry.Endpoint
	changes        []xdsupdate.EndpointChange
}

// needsRework reports whether the endpoints of all slices have to be recomputed.
func (w *hostWork) needsRework() bool { return w != nil && w.rework }

// hostView is a service as published to readers. It is immutable.
type hostView struct {
	object    *service
	service   *registry.Service
	endpoints publish.Endpoints
}

// host returns the host of a service; it creates one if there is none.
func (e *engine) host(k objectKey) *host {
	s := e.space(k.namespace)
	h := s.hosts[k.name]
	if h == nil {
		h = &host{objectKey: k, hostname: e.hostnameOf(k)}
		s.hosts[k.name] = h
	}
	return h
}

// dropHost drops a host that has neither a service nor slices.
func (e *engine) dropHost(h *host) {
	if h.object == nil && len(h.slices) == 0 && h.work == nil {
		delete(e.space(h.namespace).hosts, h.name)
	}
}

// reported reports whether the endpoints of the service are reported to the updater.
func (h *host) reported() bool { return h.object != nil && !h.object.hidden() }

// putService sets the current state of a service; nil if it does not exist.
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
			e.batch.rebuildSlice(n)
		}
	}
	work.rebuild, work.reselect = true, true
	e.indexSelector(h)
	setMember(e.nodeHosts, h, s != nil && s.nodePorts())
}

// dependency has the attributes of a service that the endpoints of slices depend on.
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

// completeEndpoints computes the next list of endpoints and the changes from the last one.
func (e *engine) completeEndpoints(h *host) publish.Endpoints {
	w := h.work
	var list publish.Endpoints
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
		if curr == t.former {
			continue
		}
		if t.former != nil {
			w.removed = append(w.removed, t.former)
		}
		if curr != nil {
			w.added = append(w.added, curr)
		}
	}
	list, w.changes = publish.Edit(list, list.Edit(max(len(w.removed), len(w.added))), w.removed, w.added)
	return list
}
