// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pilotkit/pilotkit/internal/cow"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// SetEndpoints replaces all endpoints of a service; none is fine. What is equal to
// an endpoint that is there stays as it was, so that handing over an unchanged
// list changes nothing. Of equal endpoints in the list one is kept. The slice
// remains the caller's.
//
// The error is ErrUnknownService if there is no such service, ErrInvalid if an
// endpoint is nil.
func (r *Registry) SetEndpoints(hostname registry.Hostname, namespace string, endpoints []*registry.Endpoint) error {
	k := serviceKey{hostname: hostname, namespace: namespace}
	if slices.Contains(endpoints, nil) {
		return invalid("set endpoints of", k, "an endpoint is nil")
	}
	return r.commit(func(s *state) (*state, change, error) {
		service := s.service(k)
		if service == nil {
			return s, change{}, fmt.Errorf("set endpoints of %s: %w", k, ErrUnknownService)
		}
		kept, changes := difference(s.endpointsOf(k).Slice(), endpoints)
		return s.withEndpoints(service, cow.FromSlice(kept), changes)
	})
}

// AddEndpoint adds an endpoint to a service. If an equal one is there, it stays
// instead. Errors as for SetEndpoints.
func (r *Registry) AddEndpoint(hostname registry.Hostname, namespace string, endpoint *registry.Endpoint) error {
	return r.ChangeEndpoints(hostname, namespace, []xdsupdate.EndpointChange{{New: endpoint}})
}

// RemoveEndpoint removes the endpoint that is equal to the given one. Errors as
// for ChangeEndpoints.
func (r *Registry) RemoveEndpoint(hostname registry.Hostname, namespace string, endpoint *registry.Endpoint) error {
	return r.ChangeEndpoints(hostname, namespace, []xdsupdate.EndpointChange{{Old: endpoint}})
}

// ChangeEndpoints makes several changes to the endpoints of a service in one step,
// at the cost of what changes. Old is the endpoint that is there, or one equal to
// it; nil adds. New takes its place; nil removes.
//
// Nothing is changed if there is an error: ErrUnknownService, ErrUnknownEndpoint
// if an Old is not there, ErrInvalid if a change has neither Old nor New.
func (r *Registry) ChangeEndpoints(hostname registry.Hostname, namespace string, changes []xdsupdate.EndpointChange) error {
	k := serviceKey{hostname: hostname, namespace: namespace}
	return r.commit(func(s *state) (*state, change, error) {
		service := s.service(k)
		if service == nil {
			return s, change{}, fmt.Errorf("change endpoints of %s: %w", k, ErrUnknownService)
		}
		list := s.endpointsOf(k).Edit(len(changes))
		var made []xdsupdate.EndpointChange
		for _, c := range changes {
			if c.Old == nil && c.New == nil {
				return s, change{}, invalid("change endpoints of", k, "a change without endpoint")
			}
			c, err := apply(list, c)
			if err != nil {
				return s, change{}, fmt.Errorf("change endpoints of %s: %w", k, err)
			}
			if c.Old != c.New {
				made = append(made, c)
			}
		}
		return s.withEndpoints(service, list.Sorted(), net(made))
	})
}

// apply makes one change and returns it with the endpoints that are really gone
// and there: Old and New are the same if nothing changed.
func apply(list *cow.Editor[*registry.Endpoint], c xdsupdate.EndpointChange) (xdsupdate.EndpointChange, error) {
	if c.Old != nil {
		old, ok := find(list.Sorted(), c.Old)
		if !ok {
			return c, fmt.Errorf("%w: %s port %d", ErrUnknownEndpoint, c.Old.Address(), c.Old.EndpointPort)
		}
		if c.New != nil && old.Equal(c.New) {
			return xdsupdate.EndpointChange{Old: old, New: old}, nil
		}
		c.Old = old
		list.Delete(registry.CompareEndpoints, old, identical)
	}
	if c.New != nil {
		if same, ok := find(list.Sorted(), c.New); ok {
			if c.Old == nil {
				return xdsupdate.EndpointChange{Old: same, New: same}, nil
			}
			c.New = nil
			return c, nil
		}
		list.Insert(registry.CompareEndpoints, c.New)
	}
	return c, nil
}

// find returns the endpoint of a list that is equal to e.
func find(list cow.Sorted[*registry.Endpoint], e *registry.Endpoint) (*registry.Endpoint, bool) {
	if found, ok := list.Find(registry.CompareEndpoints, e); ok {
		return found, true
	}
	// Equal ignores the order of addresses, on which the order of the list depends.
	switch len(e.Addresses) {
	case 0, 1:
		return nil, false
	case 2:
		swapped := *e
		swapped.Addresses = []string{e.Addresses[1], e.Addresses[0]}
		return list.Find(registry.CompareEndpoints, &swapped)
	}
	for found := range list.All() {
		if found.Equal(e) {
			return found, true
		}
	}
	return nil, false
}

// net removes what is both made and unmade in one list of changes.
func net(changes []xdsupdate.EndpointChange) []xdsupdate.EndpointChange {
	var out []xdsupdate.EndpointChange
	for _, c := range changes {
		i := slices.IndexFunc(out, func(x xdsupdate.EndpointChange) bool { return x.New != nil && x.New == c.Old })
		switch {
		case i < 0:
			out = append(out, c)
		case out[i].Old == nil && c.New == nil:
			out = slices.Delete(out, i, i+1)
		default:
			out[i].New = c.New
		}
	}
	return out
}

// withEndpoints returns the state with other endpoints of a service.
func (s *state) withEndpoints(
	service *registry.Service, endpoints cow.Sorted[*registry.Endpoint], changes []xdsupdate.EndpointChange,
) (*state, change, error) {
	if len(changes) == 0 {
		return s, change{}, nil
	}
	k := keyOf(service)
	next := s.clone()
	for _, c := range changes {
		if c.Old != nil {
			next.unindex(k, c.Old)
		}
		if c.New != nil {
			next.index(k, c.New)
		}
	}
	if endpoints.Len() == 0 {
		next.endpoints = s.endpoints.Delete(k)
	} else {
		next.endpoints = s.endpoints.Set(k, endpoints)
	}
	return next, change{endpoints: &endpointsChange{service: service, endpoints: endpoints, changes: changes}}, nil
}

// difference returns the endpoints that are to be kept, sorted, and how they
// differ from the old ones, which are sorted and without equal ones.
func difference(old, list []*registry.Endpoint) (kept []*registry.Endpoint, changes []xdsupdate.EndpointChange) {
	if !slices.IsSortedFunc(list, registry.CompareEndpoints) {
		list = slices.Clone(list)
		slices.SortFunc(list, registry.CompareEndpoints)
	}
	kept = make([]*registry.Endpoint, 0, len(list))
	var added, gone []*registry.Endpoint
	i := 0
	for j, e := range list {
		if j > 0 && registry.CompareEndpoints(list[j-1], e) == 0 {
			continue
		}
		for i < len(old) && registry.CompareEndpoints(old[i], e) < 0 {
			gone = append(gone, old[i])
			i++
		}
		if i < len(old) && registry.CompareEndpoints(old[i], e) == 0 {
			kept = append(kept, old[i])
			i++
			continue
		}
		added = append(added, e)
	}
	gone = append(gone, old[i:]...)
	added, gone, kept = reordered(added, gone, kept)
	for _, e := range added {
		changes = append(changes, xdsupdate.EndpointChange{New: e})
	}
	for _, e := range gone {
		changes = append(changes, xdsupdate.EndpointChange{Old: e})
	}
	if len(added) > 0 || len(kept) < cap(kept) {
		kept = append(kept, added...)
		slices.SortFunc(kept, registry.CompareEndpoints)
	}
	return kept, changes
}

// reordered moves to kept what differs from an endpoint that is gone, or from
// another one, in the order of its addresses only: the order of lists depends on
// that, Equal does not.
func reordered(added, gone, kept []*registry.Endpoint) (stillAdded, stillGone, nowKept []*registry.Endpoint) {
	if !slices.ContainsFunc(added, hasSeveral) {
		return added, gone, kept
	}
	left, there := byAddresses(gone), byAddresses(kept)
	for _, e := range added {
		k := addressSet(e)
		if i := slices.IndexFunc(left[k], e.Equal); i >= 0 {
			e = left[k][i]
			left[k] = slices.Delete(left[k], i, i+1)
			gone = slices.DeleteFunc(gone, func(x *registry.Endpoint) bool { return x == e })
			kept = append(kept, e)
		} else if !slices.ContainsFunc(there[k], e.Equal) {
			stillAdded = append(stillAdded, e)
		}
		there[k] = append(there[k], e)
	}
	return stillAdded, gone, kept
}

func hasSeveral(e *registry.Endpoint) bool { return len(e.Addresses) > 1 }

// byAddresses finds endpoints by their addresses, in whatever order.
func byAddresses(endpoints []*registry.Endpoint) map[string][]*registry.Endpoint {
	out := make(map[string][]*registry.Endpoint, len(endpoints))
	for _, e := range endpoints {
		out[addressSet(e)] = append(out[addressSet(e)], e)
	}
	return out
}

func addressSet(e *registry.Endpoint) string {
	return strings.Join(slices.Sorted(slices.Values(e.Addresses)), " ")
}
