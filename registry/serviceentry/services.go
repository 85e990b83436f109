// SPDX-License-Identifier: Apache-2.0

package serviceentry

import (
	"cmp"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"github.com/pilotkit/pilotkit/internal/cow"
	"github.com/pilotkit/pilotkit/registry"
)

// editServices applies the changes of a batch to the sorted services.
func editServices(list cow.Sorted[*registry.Service], changes []serviceChange) cow.Sorted[*registry.Service] {
	if list.Len() == 0 {
		return firstServices(changes)
	}
	e := list.Edit(len(changes))
	for _, c := range changes {
		switch c.event {
		case registry.EventAdd:
			e.Insert(registry.CompareServices, c.curr)
		case registry.EventUpdate:
			e.Replace(registry.CompareServices, c.prev, c.curr, identicalService)
		case registry.EventDelete:
			e.Delete(registry.CompareServices, c.curr, identicalService)
		}
	}
	return e.Sorted()
}

// firstServices is editServices for no services: there can be nothing but new
// ones.
func firstServices(changes []serviceChange) cow.Sorted[*registry.Service] {
	all := make([]*registry.Service, len(changes))
	for i, c := range changes {
		all[i] = c.curr
	}
	slices.SortFunc(all, registry.CompareServices)
	return cow.Adopt(all)
}

func identicalService(s, t *registry.Service) bool { return s == t }

// compareAge is the order in which services choose an automatically allocated
// address, as in Istio 1.30: by age, host name, namespace and entry.
func compareAge(s, t *registry.Service) int {
	return cmp.Or(
		s.CreationTime.Compare(t.CreationTime),
		strings.Compare(s.Attributes.Name, t.Attributes.Name),
		strings.Compare(s.Attributes.Namespace, t.Attributes.Namespace),
		strings.Compare(s.Attributes.ObjectName, t.Attributes.ObjectName),
	)
}

// view is what Services returns for one state. It is made when it is asked for.
type view struct {
	services   cow.Sorted[*registry.Service]
	allocation AddressAllocation
	logger     *slog.Logger

	once sync.Once
	list []*registry.Service
	// allocated holds the copies with addresses, by the service that has none; nil
	// unless addresses are allocated by hash.
	allocated map[*registry.Service]*registry.Service
}

func newView(services cow.Sorted[*registry.Service], allocation AddressAllocation, logger *slog.Logger) *view {
	return &view{services: services, allocation: allocation, logger: logger}
}

func (v *view) make() {
	v.list = v.services.Slice()
	if v.allocation == AllocateByHash {
		v.allocated = allocateByHash(v.list, v.logger)
		for i, s := range v.list {
			if t, ok := v.allocated[s]; ok {
				v.list[i] = t
			}
		}
	}
}

func (v *view) all() []*registry.Service {
	v.once.Do(v.make)
	return v.list
}

// shown returns a service as Services shows it.
func (v *view) shown(s *registry.Service) *registry.Service {
	if v.allocation != AllocateByHash {
		return s
	}
	v.once.Do(v.make)
	if t, ok := v.allocated[s]; ok {
		return t
	}
	return s
}
