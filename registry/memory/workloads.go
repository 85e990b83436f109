// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"fmt"
	"iter"
	"net/netip"
	"slices"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/internal/publish"
)

// SetWorkload adds a workload, or replaces the workload with the same key. Proxies with one of its
// addresses get its labels; other registries may select it.
//
// The updater gets a ProxyUpdate for the workload's addresses if the workload is new or its labels
// changed, and for each address that the workload did not have before. The error is ErrInvalid if
// the workload or its endpoint is nil, or if it has no name.
func (r *Registry) SetWorkload(workload *registry.WorkloadInstance) error {
	switch {
	case workload == nil:
		return fmt.Errorf("set workload: %w: nil", ErrInvalid)
	case workload.Name == "":
		return fmt.Errorf("set workload: %w: no name", ErrInvalid)
	case workload.Endpoint == nil:
		return fmt.Errorf("set %s: %w: no endpoint", workload.Key(), ErrInvalid)
	}
	return r.publisher.Commit(func(s *state) (*state, *publish.Change, error) {
		old, exists := s.workloads.Get(workload.Key())
		if exists && old.Equal(workload) {
			return s, nil, nil
		}
		next := s.clone()
		if exists {
			next.removeWorkload(old)
		}
		next.addWorkload(workload)
		return next, &publish.Change{
			WorkloadChanges: workloadChange(old, workload), Proxies: func() []publish.Proxy { return r.proxiesToUpdate(old, workload) },
		}, nil
	})
}

// RemoveWorkload removes a workload. The error is ErrUnknownWorkload if there is none.
func (r *Registry) RemoveWorkload(key registry.WorkloadKey) error {
	return r.publisher.Commit(func(s *state) (*state, *publish.Change, error) {
		old, exists := s.workloads.Get(key)
		if !exists {
			return s, nil, fmt.Errorf("remove %s: %w", key, ErrUnknownWorkload)
		}
		next := s.clone()
		next.removeWorkload(old)
		return next, &publish.Change{WorkloadChanges: workloadChange(old, nil)}, nil
	})
}

// workloadChange yields the change of one workload.
func workloadChange(prev, curr *registry.WorkloadInstance) iter.Seq2[*registry.WorkloadInstance, *registry.WorkloadInstance] {
	return func(yield func(prev, curr *registry.WorkloadInstance) bool) { yield(prev, curr) }
}

func (s *state) addWorkload(w *registry.WorkloadInstance) {
	s.workloads = s.workloads.Set(w.Key(), w)
	s.workloadsByAddress = withAddresses(s.workloadsByAddress, w.Endpoint.Addresses, w)
}

func (s *state) removeWorkload(w *registry.WorkloadInstance) {
	s.workloads = s.workloads.Delete(w.Key())
	s.workloadsByAddress = withoutAddresses(s.workloadsByAddress, w.Endpoint.Addresses, w)
}

// proxiesToUpdate returns the proxies that need a ProxyUpdate. It skips host names, because they
// are not addresses of proxies.
func (r *Registry) proxiesToUpdate(old, curr *registry.WorkloadInstance) []publish.Proxy {
	var out []publish.Proxy
	relabelled := old == nil || !old.Endpoint.Attributes().Labels.Equal(curr.Endpoint.Attributes().Labels)
	for _, a := range distinct(curr.Endpoint.Addresses) {
		if _, err := netip.ParseAddr(a); err != nil {
			continue
		}
		if relabelled || !slices.Contains(old.Endpoint.Addresses, a) {
			out = append(out, publish.Proxy{Cluster: r.opts.Cluster, IP: a})
		}
	}
	return out
}
