// SPDX-License-Identifier: Apache-2.0

package serviceentry

import (
	"slices"

	"github.com/pilotkit/pilotkit/internal/cow"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// complete turns what was added and removed in a batch into the next list of
// endpoints and the changes that lead to it. What was removed and added again is
// no change, and keeps the endpoint that the updater knows.
func (h *host) complete(touch func(*entry)) {
	w := h.work
	h.reopen(touch)
	w.was, h.dns = h.dns, h.contributesDNS()
	h.setView(h.difference())
}

// difference returns the next list of endpoints, and records the changes.
func (h *host) difference() cow.Sorted[*registry.Endpoint] {
	w, list := h.work, h.endpoints()
	if len(w.added) == 0 && len(w.removed) == 0 {
		return list
	}
	w.added, w.removed = cancel(w.added, w.removed)
	editor := list.Edit(max(len(w.added), len(w.removed)))
	removed, added := h.withoutRepeats(w, editor)
	w.changes = pair(removed, added)
	if len(w.changes) == 0 {
		return list
	}
	return edit(list, editor, w.changes)
}

// cancel sorts both lists and takes equal endpoints out of them, in pairs.
func cancel(added, removed []*registry.Endpoint) (onlyAdded, onlyRemoved []*registry.Endpoint) {
	slices.SortFunc(added, registry.CompareEndpoints)
	slices.SortFunc(removed, registry.CompareEndpoints)
	if len(added) == 0 || len(removed) == 0 {
		return added, removed
	}
	onlyAdded, onlyRemoved = added[:0], removed[:0]
	for len(added) > 0 && len(removed) > 0 {
		switch c := registry.CompareEndpoints(added[0], removed[0]); {
		case c == 0:
			added, removed = added[1:], removed[1:]
		case c < 0:
			onlyAdded, added = append(onlyAdded, added[0]), added[1:]
		default:
			onlyRemoved, removed = append(onlyRemoved, removed[0]), removed[1:]
		}
	}
	return append(onlyAdded, added...), append(onlyRemoved, removed...)
}

// withoutRepeats returns the endpoints that leave the list and those that enter
// it, both sorted: an endpoint leaves with the last of its equals, and enters
// with the first. The results take the place of w.removed and w.added. editor has
// the list as it is.
func (h *host) withoutRepeats(w *hostWork, editor *cow.Editor[*registry.Endpoint]) (removed, added []*registry.Endpoint) {
	removed, added = w.removed[:0], w.added[:0]
	for _, e := range w.removed {
		known, ok := editor.Find(registry.CompareEndpoints, e)
		switch {
		case !ok:
		case h.repeated[known] > 1:
			h.repeated[known]--
		case h.repeated[known] == 1:
			delete(h.repeated, known)
		default:
			removed = append(removed, known)
		}
	}
	for _, e := range w.added {
		known, ok := editor.Find(registry.CompareEndpoints, e)
		if n := len(added); !ok && n > 0 && registry.CompareEndpoints(added[n-1], e) == 0 {
			known, ok = added[n-1], true
		}
		if !ok {
			added = append(added, e)
			continue
		}
		if h.repeated == nil {
			h.repeated = map[*registry.Endpoint]int{}
		}
		h.repeated[known]++
	}
	return removed, added
}

// pair makes one change of an endpoint that leaves and one of the same key that
// enters. Both lists are sorted, hence by key first.
func pair(removed, added []*registry.Endpoint) []xdsupdate.EndpointChange {
	out := make([]xdsupdate.EndpointChange, 0, len(removed)+len(added))
	for len(removed) > 0 || len(added) > 0 {
		switch c := comparePairs(removed, added); {
		case c == 0:
			out = append(out, xdsupdate.EndpointChange{Old: removed[0], New: added[0]})
			removed, added = removed[1:], added[1:]
		case c < 0:
			out = append(out, xdsupdate.EndpointChange{Old: removed[0]})
			removed = removed[1:]
		default:
			out = append(out, xdsupdate.EndpointChange{New: added[0]})
			added = added[1:]
		}
	}
	return out
}

func comparePairs(removed, added []*registry.Endpoint) int {
	switch {
	case len(removed) == 0:
		return 1
	case len(added) == 0:
		return -1
	default:
		return registry.CompareEndpointKeys(removed[0], added[0])
	}
}

// edit applies changes to a list of endpoints, of which e is an editor. The old
// endpoints of the changes are sorted, and so are the new ones.
func edit(
	list cow.Sorted[*registry.Endpoint], e *cow.Editor[*registry.Endpoint], changes []xdsupdate.EndpointChange,
) cow.Sorted[*registry.Endpoint] {
	if 2*len(changes) >= list.Len() {
		return rebuild(list, changes)
	}
	for _, c := range changes {
		switch {
		case c.Old == nil:
			e.Insert(registry.CompareEndpoints, c.New)
		case c.New == nil:
			e.Delete(registry.CompareEndpoints, c.Old, identical)
		default:
			e.Replace(registry.CompareEndpoints, c.Old, c.New, identical)
		}
	}
	return e.Sorted()
}

// rebuild is edit for changes that leave little as it is.
func rebuild(list cow.Sorted[*registry.Endpoint], changes []xdsupdate.EndpointChange) cow.Sorted[*registry.Endpoint] {
	size, added := list.Len(), 0
	for _, c := range changes {
		if c.Old != nil {
			size--
		}
		if c.New != nil {
			added++
		}
	}
	out := make([]*registry.Endpoint, 0, size+added)
	for _, c := range changes {
		if c.New != nil {
			out = append(out, c.New)
		}
	}
	gone := changes
	for e := range list.All() {
		for len(gone) > 0 && gone[0].Old == nil {
			gone = gone[1:]
		}
		if len(gone) > 0 && gone[0].Old == e {
			gone = gone[1:]
			continue
		}
		out = append(out, e)
	}
	if added < len(out) {
		slices.SortFunc(out, registry.CompareEndpoints)
	}
	return cow.Adopt(out)
}

func identical(a, b *registry.Endpoint) bool { return a == b }
