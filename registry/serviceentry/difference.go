// SPDX-License-Identifier: Apache-2.0

package serviceentry

import (
	"slices"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/internal/publish"
)

// complete computes the next list of endpoints and its changes from the additions and removals of a
// batch. An endpoint that was removed and added again is unchanged and keeps its identity.
func (h *host) complete(touch func(*entry)) {
	w := h.work
	h.updateRoundRobin(touch)
	w.was, h.dns = h.dns, h.contributesDNS()
	h.setView(h.difference())
}

// difference returns the next list of endpoints, and records the changes.
func (h *host) difference() publish.Endpoints {
	w, list := h.work, h.endpoints()
	if len(w.added) == 0 && len(w.removed) == 0 {
		return list
	}
	w.added, w.removed = cancel(w.added, w.removed)
	editor := list.Edit(max(len(w.added), len(w.removed)))
	removed, added := h.withoutRepeats(w, editor)
	list, w.changes = publish.Edit(list, editor, removed, added)
	return list
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

// withoutRepeats returns the endpoints that leave the list and the endpoints that enter it, both
// sorted. An endpoint leaves with its last equal and enters with its first one. The results reuse
// w.removed and w.added. editor has the unchanged list.
func (h *host) withoutRepeats(w *hostWork, editor *publish.Editor) (removed, added []*registry.Endpoint) {
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
