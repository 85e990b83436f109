// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"cmp"
	"slices"
	"strings"

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

	// members has the endpoint that each key has, and rivals all that claim a key, as
	// long as there are several.
	members map[memberKey]candidate
	rivals  map[memberKey][]candidate
	// foreign are the endpoints of workloads.
	foreign map[registry.WorkloadKey][]*registry.Endpoint

	// What follows is part of the batch.

	// before is the view, and objectBefore the object, that readers know.
	before       *hostView
	objectBefore *service
	dirty        bool
	// remodeled: the model has to be made again. rework: the endpoints of all slices,
	// as they depend on the service. reselect: those of workloads.
	remodeled, rework, reselect bool
	// winners has the former endpoint of each key that may have another one now.
	winners map[memberKey]*registry.Endpoint
	// added and removed are endpoints of workloads.
	added, removed []*registry.Endpoint
	changes        []xdsupdate.EndpointChange
}

// hostView is what readers see of a service. It is immutable.
type hostView struct {
	object    *service
	service   *registry.Service
	endpoints cow.Sorted[*registry.Endpoint]
}

// memberKey identifies the endpoints of which only one counts: those of slices
// with one address and port name.
type memberKey struct{ address, port string }

func keyOf(ep *registry.Endpoint) memberKey { return memberKey{ep.Address(), ep.ServicePortName} }

// candidate is an endpoint that claims a key, with the slice that it is of.
type candidate struct {
	endpoint *registry.Endpoint
	slice    *sliceNode
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
	if h.object == nil && len(h.slices) == 0 && !h.dirty {
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
	e.batch.remodel(h)
	h.object = s
	if dependencies(old) != dependencies(s) {
		h.rework = true
		for _, n := range h.slices {
			e.batch.rebuild(n)
		}
	}
	h.reselect = true
	e.indexSelector(h, old, s)
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

// add makes an endpoint of a slice claim its key.
func (h *host) add(e *engine, k memberKey, ep *registry.Endpoint, n *sliceNode) {
	h.touch(e, k)
	c := candidate{ep, n}
	holder, taken := h.members[k]
	if !taken {
		h.members[k] = c
		return
	}
	if h.rivals == nil {
		h.rivals = map[memberKey][]candidate{}
	}
	if h.rivals[k] == nil {
		h.rivals[k] = []candidate{holder}
	}
	h.rivals[k] = append(h.rivals[k], c)
	h.members[k] = elect(h.rivals[k])
}

// remove ends the claim of an endpoint.
func (h *host) remove(e *engine, k memberKey, ep *registry.Endpoint, n *sliceNode) {
	h.touch(e, k)
	rivals := h.rivals[k]
	if rivals == nil {
		delete(h.members, k)
		return
	}
	rivals = without(rivals, candidate{ep, n})
	if len(rivals) == 1 {
		delete(h.rivals, k)
	} else {
		h.rivals[k] = rivals
	}
	h.members[k] = elect(rivals)
}

// touch remembers the endpoint that a key had before the batch.
func (h *host) touch(e *engine, k memberKey) {
	e.batch.touch(h)
	if h.members == nil {
		h.members = map[memberKey]candidate{}
	}
	if h.winners == nil {
		h.winners = map[memberKey]*registry.Endpoint{}
	}
	if _, ok := h.winners[k]; !ok {
		h.winners[k] = h.members[k].endpoint
	}
}

// elect returns the claim that counts: that of a healthy endpoint before others,
// then of the first slice by name, then of the first in the slice.
func elect(claims []candidate) candidate {
	return slices.MinFunc(claims, func(a, b candidate) int {
		return cmp.Or(
			cmp.Compare(unhealthiness(a), unhealthiness(b)),
			strings.Compare(a.slice.object.name, b.slice.object.name),
			slices.Index(a.slice.built, a.endpoint)-slices.Index(b.slice.built, b.endpoint),
		)
	})
}

func unhealthiness(c candidate) int {
	if c.endpoint.HealthStatus == registry.Healthy {
		return 0
	}
	return 1
}

// complete computes the next list of endpoints and the changes that lead to it.
func (h *host) complete(e *engine) cow.Sorted[*registry.Endpoint] {
	var list cow.Sorted[*registry.Endpoint]
	if h.before != nil {
		list = h.before.endpoints
	}
	for k, old := range h.winners {
		if curr := h.members[k].endpoint; curr != old && !h.adopt(k, old) {
			h.changes = append(h.changes, xdsupdate.EndpointChange{Old: old, New: curr})
			e.locateEndpoint(h, old, curr)
		}
	}
	h.changes = append(h.changes, pair(h.removed, h.added)...)
	if len(h.changes) == 0 {
		return list
	}
	slices.SortFunc(h.changes, compareChanges)
	if len(h.changes) >= max(list.Len(), 8) {
		return rebuilt(list, h.changes)
	}
	editor := list.Edit(len(h.changes))
	for _, c := range h.changes {
		if c.Old != nil {
			editor.Delete(registry.CompareEndpoints, c.Old, identical)
		}
		if c.New != nil {
			editor.Insert(registry.CompareEndpoints, c.New)
		}
	}
	return editor.Sorted()
}

// adopt puts the endpoint that readers know in the place of an equal one that has
// taken over its key, as one slice may take over from another: then nothing
// changes. It reports whether it did.
func (h *host) adopt(k memberKey, known *registry.Endpoint) bool {
	winner, ok := h.members[k]
	if !ok || known == nil || !sameEndpoint(known, winner.endpoint) || slices.Contains(winner.slice.built, known) {
		return false
	}
	winner.slice.built[slices.Index(winner.slice.built, winner.endpoint)] = known
	if i := slices.Index(h.rivals[k], winner); i >= 0 {
		h.rivals[k][i].endpoint = known
	}
	winner.endpoint = known
	h.members[k] = winner
	return true
}

// locateEndpoint makes a host be found by the addresses of its endpoints, once for
// each.
func (e *engine) locateEndpoint(h *host, old, curr *registry.Endpoint) {
	if old != nil && curr != nil && slices.Equal(old.Addresses, curr.Addresses) {
		return
	}
	if old != nil {
		for _, address := range old.Addresses {
			a := spaceAddress{h.namespace, address}
			l, _ := e.slicesAt.Get(a)
			if l = without(l, h); l == nil {
				e.slicesAt.Delete(a)
			} else {
				e.slicesAt.Set(a, l)
			}
		}
	}
	if curr != nil {
		for _, address := range curr.Addresses {
			a := spaceAddress{h.namespace, address}
			l, _ := e.slicesAt.Get(a)
			e.slicesAt.Set(a, append(slices.Clip(l), h))
		}
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

// clear ends the host's part in the batch.
func (h *host) clear() {
	h.before, h.objectBefore, h.dirty = nil, nil, false
	h.remodeled, h.rework, h.reselect = false, false, false
	h.winners, h.added, h.removed, h.changes = nil, nil, nil, nil
	if len(h.members) == 0 {
		h.members = nil
	}
	if len(h.rivals) == 0 {
		h.rivals = nil
	}
}
