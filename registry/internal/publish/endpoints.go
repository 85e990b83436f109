// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"slices"

	"github.com/pilotkit/pilotkit/internal/cow"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// Endpoints are the endpoints of a service, sorted by registry.CompareEndpoints.
type Endpoints = cow.Sorted[*registry.Endpoint]

// Editor is an editor of Endpoints.
type Editor = cow.Editor[*registry.Endpoint]

// Edit returns a list without the removed endpoints, which must be elements of it, and with the
// added ones. It also returns the changes. A removed and an added endpoint with the same key
// (registry.CompareEndpointKeys) are one change. The editor must hold the unchanged list. Edit
// reorders removed and added, and its results do not alias them.
func Edit(list Endpoints, editor *Editor, removed, added []*registry.Endpoint) (Endpoints, []xdsupdate.EndpointChange) {
	slices.SortFunc(removed, registry.CompareEndpoints)
	slices.SortFunc(added, registry.CompareEndpoints)
	changes := pair(removed, added)
	switch {
	case len(changes) == 0:
		return list, nil
	case 2*len(changes) >= list.Len():
		return merge(list, removed, added), changes
	}
	for _, c := range changes {
		switch {
		case c.Old == nil:
			editor.Insert(registry.CompareEndpoints, c.New)
		case c.New == nil:
			editor.Delete(registry.CompareEndpoints, c.Old, Identical)
		default:
			editor.Replace(registry.CompareEndpoints, c.Old, c.New, Identical)
		}
	}
	return editor.Sorted(), changes
}

// Identical reports whether two endpoints are the same object.
func Identical(a, b *registry.Endpoint) bool { return a == b }

// pair merges removals and additions of the same key into one change. Both lists are sorted, hence
// by key first.
func pair(removed, added []*registry.Endpoint) []xdsupdate.EndpointChange {
	if len(removed)+len(added) == 0 {
		return nil
	}
	out := make([]xdsupdate.EndpointChange, 0, len(removed)+len(added))
	for len(removed) > 0 || len(added) > 0 {
		switch c := compareFirst(removed, added, registry.CompareEndpointKeys); {
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

// compareFirst compares the first elements. An empty list comes last.
func compareFirst(a, b []*registry.Endpoint, compare func(a, b *registry.Endpoint) int) int {
	switch {
	case len(a) == 0:
		return 1
	case len(b) == 0:
		return -1
	default:
		return compare(a[0], b[0])
	}
}

// merge is Edit for changes of most of the list. It rebuilds the list in one pass. It reorders
// removed.
func merge(list Endpoints, removed, added []*registry.Endpoint) Endpoints {
	out := make([]*registry.Endpoint, 0, max(0, list.Len()-len(removed))+len(added))
	for e := range list.All() {
		var gone bool
		if removed, gone = take(removed, e); gone {
			continue
		}
		for len(added) > 0 && registry.CompareEndpoints(added[0], e) < 0 {
			out, added = append(out, added[0]), added[1:]
		}
		out = append(out, e)
	}
	return cow.Adopt(append(out, added...))
}

// take reports whether the sorted list removed contains e. It removes e and all endpoints that sort
// before it, because they are not in the list. It changes the order of equal endpoints.
func take(removed []*registry.Endpoint, e *registry.Endpoint) (rest []*registry.Endpoint, found bool) {
	for i := 0; i < len(removed); i++ {
		if removed[i] == e {
			removed[i] = removed[0]
			return removed[1:], true
		}
		switch c := registry.CompareEndpoints(removed[i], e); {
		case c > 0:
			return removed, false
		case c < 0: // then it is the first
			removed = removed[1:]
			i--
		}
	}
	return removed, false
}
