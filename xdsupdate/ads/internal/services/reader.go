// SPDX-License-Identifier: Apache-2.0

package services

import (
	"slices"

	"github.com/pilotkit/pilotkit/registry"
)

// Reader finds the services of one moment by host name.
type Reader struct {
	set *registry.ServiceSet
	// ok means that the services were read. If not, only the endpoints of hosts are updated.
	ok bool
}

// of returns the services of a host in the order of CompareServices.
func (s Reader) of(name registry.Hostname) []*registry.Service {
	services := withoutNil(s.set.Host(name))
	if len(services) > 1 {
		services = slices.Clone(services)
		slices.SortStableFunc(services, registry.CompareServices)
	}
	return services
}

// withoutNil returns a list of the program without nil elements.
func withoutNil[T any](list []*T) []*T {
	isNil := func(p *T) bool { return p == nil }
	if !slices.ContainsFunc(list, isNil) {
		return list
	}
	return slices.DeleteFunc(slices.Clone(list), isNil)
}
