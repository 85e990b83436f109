// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/pilotkit/pilotkit/registry"
)

// SetWorkload adds a workload, or replaces the one of the same key. Proxies that
// have one of its addresses get its labels; other registries may select it.
//
// The updater gets a ProxyUpdate for the workload's addresses if it is new, or if
// its labels changed, and for an address that it did not have before. The error
// is ErrInvalid if the workload or its endpoint is nil, or it has no name.
func (r *Registry) SetWorkload(workload *registry.WorkloadInstance) error {
	switch {
	case workload == nil:
		return fmt.Errorf("set workload: %w: nil", ErrInvalid)
	case workload.Name == "":
		return fmt.Errorf("set workload: %w: no name", ErrInvalid)
	case workload.Endpoint == nil:
		return fmt.Errorf("set %s: %w: no endpoint", workload.Key(), ErrInvalid)
	}
	return r.commit(func(s *state) (*state, change, error) {
		old, exists := s.workloads.Get(workload.Key())
		if exists && old.Equal(workload) {
			return s, change{}, nil
		}
		next, event := s.clone(), registry.EventAdd
		if exists {
			event = registry.EventUpdate
			next.removeWorkload(old)
		}
		next.addWorkload(workload)
		return next, change{workload: &workloadChange{curr: workload, event: event, proxies: proxiesToUpdate(old, workload)}}, nil
	})
}

// RemoveWorkload removes a workload. The error is ErrUnknownWorkload if there is
// none.
func (r *Registry) RemoveWorkload(key registry.WorkloadKey) error {
	return r.commit(func(s *state) (*state, change, error) {
		old, exists := s.workloads.Get(key)
		if !exists {
			return s, change{}, fmt.Errorf("remove %s: %w", key, ErrUnknownWorkload)
		}
		next := s.clone()
		next.removeWorkload(old)
		return next, change{workload: &workloadChange{curr: old, event: registry.EventDelete}}, nil
	})
}

func (s *state) addWorkload(w *registry.WorkloadInstance) {
	s.workloads = s.workloads.Set(w.Key(), w)
	for _, a := range distinct(w.Endpoint.Addresses) {
		list, _ := s.workloadsByAddress.Get(a)
		s.workloadsByAddress = s.workloadsByAddress.Set(a, append(slices.Clip(list), w))
	}
}

func (s *state) removeWorkload(w *registry.WorkloadInstance) {
	s.workloads = s.workloads.Delete(w.Key())
	for _, a := range distinct(w.Endpoint.Addresses) {
		list, _ := s.workloadsByAddress.Get(a)
		list = slices.DeleteFunc(slices.Clone(list), func(x *registry.WorkloadInstance) bool { return x == w })
		if len(list) == 0 {
			s.workloadsByAddress = s.workloadsByAddress.Delete(a)
			continue
		}
		s.workloadsByAddress = s.workloadsByAddress.Set(a, list)
	}
}

// proxiesToUpdate returns the IP addresses that need a ProxyUpdate: a host name is
// not the address of a proxy.
func proxiesToUpdate(old, curr *registry.WorkloadInstance) []string {
	var out []string
	relabelled := old == nil || !old.Endpoint.Attributes().Labels.Equal(curr.Endpoint.Attributes().Labels)
	for _, a := range distinct(curr.Endpoint.Addresses) {
		if _, err := netip.ParseAddr(a); err != nil {
			continue
		}
		if relabelled || !slices.Contains(old.Endpoint.Addresses, a) {
			out = append(out, a)
		}
	}
	return out
}
