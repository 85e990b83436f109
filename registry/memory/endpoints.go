// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/internal/publish"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// SetEndpoints replaces all endpoints of a service; the list may be empty. An existing endpoint
// that is equal to one in the list is kept, so setting an unchanged list changes nothing. Of equal
// endpoints in the list one is kept. The slice remains the caller's.
//
// The error is ErrUnknownService if there is no such service, ErrInvalid if an endpoint is nil.
func (r *Registry) SetEndpoints(hostname registry.Hostname, namespace string, endpoints []*registry.Endpoint) error {
	k := serviceKey{hostname: hostname, namespace: namespace}
	if slices.Contains(endpoints, nil) {
		return fmt.Errorf("set endpoints of %s: %w: an endpoint is nil", k, ErrInvalid)
	}
	return r.publisher.Commit(func(s *state) (*state, *publish.Change, error) {
		service := s.service(k)
		if service == nil {
			return s, nil, fmt.Errorf("set endpoints of %s: %w", k, ErrUnknownService)
		}
		list := s.endpointsOf(k)
		removed, added := difference(list, endpoints)
		next, changes := publish.Edit(list, list.Edit(max(len(removed), len(added))), removed, added)
		return s.withEndpoints(service, next, changes)
	})
}

// AddEndpoint adds an endpoint to a service. If an equal one exists, that one is kept instead. It
// returns the errors of SetEndpoints.
func (r *Registry) AddEndpoint(hostname registry.Hostname, namespace string, endpoint *registry.Endpoint) error {
	return r.ChangeEndpoints(hostname, namespace, []xdsupdate.EndpointChange{{New: endpoint}})
}

// RemoveEndpoint removes the endpoint that is equal to the given one. It returns the errors of
// ChangeEndpoints.
func (r *Registry) RemoveEndpoint(hostname registry.Hostname, namespace string, endpoint *registry.Endpoint) error {
	return r.ChangeEndpoints(hostname, namespace, []xdsupdate.EndpointChange{{Old: endpoint}})
}

// ChangeEndpoints makes several changes to the endpoints of a service in one step, at the cost of
// the change. Old is an existing endpoint, or one equal to it; nil adds. New replaces it; nil
// removes.
//
// After an error the registry is unchanged. The errors are ErrUnknownService, ErrUnknownEndpoint if
// an Old does not exist, ErrInvalid if a change has neither Old nor New.
func (r *Registry) ChangeEndpoints(hostname registry.Hostname, namespace string, changes []xdsupdate.EndpointChange) error {
	k := serviceKey{hostname: hostname, namespace: namespace}
	return r.publisher.Commit(func(s *state) (*state, *publish.Change, error) {
		service := s.service(k)
		if service == nil {
			return s, nil, fmt.Errorf("change endpoints of %s: %w", k, ErrUnknownService)
		}
		list := s.endpointsOf(k).Edit(len(changes))
		var made []xdsupdate.EndpointChange
		for _, c := range changes {
			if c.Old == nil && c.New == nil {
				return s, nil, fmt.Errorf("change endpoints of %s: %w: a change without endpoint", k, ErrInvalid)
			}
			c, err := apply(list, c)
			if err != nil {
				return s, nil, fmt.Errorf("change endpoints of %s: %w", k, err)
			}
			if c.Old != c.New {
				made = append(made, c)
			}
		}
		return s.withEndpoints(service, list.Sorted(), net(made))
	})
}

// apply makes one change. It returns the change with the endpoints that were really removed and
// added: Old and New are the same if nothing changed.
func apply(list *publish.Editor, c xdsupdate.EndpointChange) (xdsupdate.EndpointChange, error) {
	if c.Old != nil {
		old, ok := find(list.Sorted(), c.Old)
		if !ok {
			return c, fmt.Errorf("%w: %s port %d", ErrUnknownEndpoint, c.Old.Address(), c.Old.EndpointPort)
		}
		if c.New != nil && old.Equal(c.New) {
			return xdsupdate.EndpointChange{Old: old, New: old}, nil
		}
		c.Old = old
		list.Delete(registry.CompareEndpoints, old, publish.Identical)
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
func find(list publish.Endpoints, e *registry.Endpoint) (*registry.Endpoint, bool) {
	if found, ok := list.Find(registry.CompareEndpoints, e); ok {
		return found, true
	}
	// Equal ignores the order of addresses, but the order of the list depends on it.
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

// net merges successive changes of one endpoint, and drops an endpoint that the list both adds and
// removes.
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

// withEndpoints returns the state with the endpoints of a service replaced.
func (s *state) withEndpoints(
	service *registry.Service, endpoints publish.Endpoints, changes []xdsupdate.EndpointChange,
) (*state, *publish.Change, error) {
	if len(changes) == 0 {
		return s, nil, nil
	}
	k := keyOf(service)
	next := s.clone()
	next.setEndpoints(k, endpoints, changes)
	c := &publish.Change{Endpoints: []publish.EndpointUpdate{
		{Hostname: k.hostname, Namespace: k.namespace, Endpoints: endpoints, Changes: changes},
	}}
	if service.Resolution.IsDNS() {
		c.Pushes = []publish.Push{{Reason: xdsupdate.ReasonEndpoint, Key: xdsupdate.ServiceKey(k.hostname, k.namespace)}}
	}
	return next, c, nil
}

// difference compares a sorted list without equal endpoints to another list. It returns the
// endpoints that are only in the first list, and the endpoints that are only in the second, once
// each.
func difference(old publish.Endpoints, list []*registry.Endpoint) (removed, added []*registry.Endpoint) {
	if !slices.IsSortedFunc(list, registry.CompareEndpoints) {
		list = slices.Clone(list)
		slices.SortFunc(list, registry.CompareEndpoints)
	}
	j := 0
	for e := range old.All() {
		for ; j < len(list) && registry.CompareEndpoints(list[j], e) < 0; j++ {
			added = appendOnce(added, list[j])
		}
		if j == len(list) || registry.CompareEndpoints(list[j], e) > 0 {
			removed = append(removed, e)
			continue
		}
		for j < len(list) && registry.CompareEndpoints(list[j], e) == 0 {
			j++
		}
	}
	for ; j < len(list); j++ {
		added = appendOnce(added, list[j])
	}
	if slices.ContainsFunc(added, hasSeveral) {
		return withoutReordered(old, removed, added)
	}
	return removed, added
}

// appendOnce appends an endpoint that is not equal to the last one.
func appendOnce(list []*registry.Endpoint, e *registry.Endpoint) []*registry.Endpoint {
	if n := len(list); n > 0 && registry.CompareEndpoints(list[n-1], e) == 0 {
		return list
	}
	return append(list, e)
}

// withoutReordered removes endpoints that differ from one in the old list, or from another added
// one, only in the order of their addresses. Such endpoints are Equal, but have different positions
// in the order of lists.
func withoutReordered(old publish.Endpoints, removed, added []*registry.Endpoint) (stillRemoved, stillAdded []*registry.Endpoint) {
	there := byAddresses(old.All())
	stays := map[*registry.Endpoint]bool{}
	for _, e := range added {
		k := addressSet(e)
		if i := slices.IndexFunc(there[k], e.Equal); i >= 0 {
			stays[there[k][i]] = true
			continue
		}
		there[k] = append(there[k], e)
		stillAdded = append(stillAdded, e)
	}
	return slices.DeleteFunc(removed, func(e *registry.Endpoint) bool { return stays[e] }), stillAdded
}

func hasSeveral(e *registry.Endpoint) bool { return len(e.Addresses) > 1 }

// byAddresses indexes endpoints by their addresses, ignoring the order of the addresses.
func byAddresses(endpoints iter.Seq[*registry.Endpoint]) map[string][]*registry.Endpoint {
	out := map[string][]*registry.Endpoint{}
	for e := range endpoints {
		out[addressSet(e)] = append(out[addressSet(e)], e)
	}
	return out
}

func addressSet(e *registry.Endpoint) string {
	return strings.Join(slices.Sorted(slices.Values(e.Addresses)), " ")
}
