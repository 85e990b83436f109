// SPDX-License-Identifier: Apache-2.0

package services

import (
	"iter"
	"slices"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// Services yields all services, host by host.
func (t *Table) Services() iter.Seq[*registry.Service] {
	return func(yield func(*registry.Service) bool) {
		for _, h := range t.hosts.All() {
			for _, v := range h.variants {
				for _, s := range v.services {
					if !yield(s) {
						return
					}
				}
			}
		}
	}
}

// ServicesNamed returns the services of a host name, sorted by ComparePrecedence, or nil if there
// are none.
func (t *Table) ServicesNamed(hostname registry.Hostname) []*registry.Service {
	h := t.host(hostname)
	if h == nil {
		return nil
	}
	var out []*registry.Service
	for _, v := range h.variants {
		out = append(out, v.services...)
	}
	slices.SortStableFunc(out, registry.ComparePrecedence)
	return out
}

// ServicesSeen returns the services of a host name that a view sees, or nil if there are none.
func (t *Table) ServicesSeen(view View, hostname registry.Hostname) []*registry.Service {
	seen := t.host(hostname).seenBy(view)
	if seen == nil {
		return nil
	}
	var out []*registry.Service
	for _, s := range seen.services {
		if s.VisibleIn(view.Namespace) {
			out = append(out, s)
		}
	}
	return out
}

// Endpoints returns the endpoints of a service, or nil if there are none.
func (t *Table) Endpoints(hostname registry.Hostname, namespace string) *xdsupdate.ServiceEndpoints {
	if v := t.host(hostname).in(namespace); v != nil {
		return v.endpoints
	}
	return nil
}
