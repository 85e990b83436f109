// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"iter"
	"maps"
	"slices"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// listWorld is a world of a list of services.
type listWorld struct {
	services []*registry.Service
	index    *xdsupdate.EndpointIndex
}

func newListWorld(services ...*registry.Service) *listWorld {
	slices.SortStableFunc(services, registry.CompareServices)
	return &listWorld{services: services, index: xdsupdate.NewEndpointIndex()}
}

func (w *listWorld) hosts() iter.Seq2[registry.Hostname, []*registry.Service] {
	out := make(map[registry.Hostname][]*registry.Service)
	for _, s := range w.services {
		out[lower(s.Hostname)] = append(out[lower(s.Hostname)], s)
	}
	for _, list := range out {
		slices.SortStableFunc(list, registry.ComparePrecedence)
	}
	return maps.All(out)
}

func (w *listWorld) named(host registry.Hostname) []*registry.Service {
	out := slices.DeleteFunc(slices.Clone(w.services), func(s *registry.Service) bool { return lower(s.Hostname) != lower(host) })
	slices.SortStableFunc(out, registry.ComparePrecedence)
	return out
}

func (w *listWorld) aliases(host registry.Hostname) []registry.Hostname {
	var out []registry.Hostname
	for _, s := range w.services {
		if targetOf(s) == host {
			out = append(out, lower(s.Hostname))
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func (w *listWorld) endpoints(host registry.Hostname, namespace string) *xdsupdate.ServiceEndpoints {
	return w.index.Service(host, namespace)
}
