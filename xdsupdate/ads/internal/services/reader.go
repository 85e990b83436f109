// SPDX-License-Identifier: Apache-2.0

package services

import (
	"slices"
	"strings"

	"github.com/pilotkit/pilotkit/registry"
)

// Reader finds the services of one moment by host name.
type Reader struct {
	// set is the snapshot of a registry.ServiceSnapshotter or of a root. Without one, list has all
	// services, sorted by CompareServices.
	set  *registry.ServiceSet
	list []*registry.Service
	// ok means that the services were read. If not, only the endpoints of hosts are updated.
	ok bool
}

// of returns the services of a host in the order of CompareServices.
func (s Reader) of(name registry.Hostname) []*registry.Service {
	if s.set == nil {
		return servicesOf(s.list, name)
	}
	services := withoutNil(s.set.Host(name))
	if len(services) > 1 {
		services = slices.Clone(services)
		slices.SortStableFunc(services, registry.CompareServices)
	}
	return services
}

// servicesOf returns the services of a host, from the sorted list of all.
func servicesOf(services []*registry.Service, name registry.Hostname) []*registry.Service {
	from, _ := slices.BinarySearchFunc(services, name, func(s *registry.Service, name registry.Hostname) int {
		return strings.Compare(string(s.Hostname), string(name))
	})
	to := from
	for to < len(services) && services[to].Hostname == name {
		to++
	}
	return services[from:to]
}

// withoutNil returns a list of the program without nil elements.
func withoutNil[T any](list []*T) []*T {
	isNil := func(p *T) bool { return p == nil }
	if !slices.ContainsFunc(list, isNil) {
		return list
	}
	return slices.DeleteFunc(slices.Clone(list), isNil)
}
