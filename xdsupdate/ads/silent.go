// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"log/slog"
	"maps"
	"slices"

	"go.uber.org/atomic"

	"github.com/pilotkit/pilotkit/registry"
)

// providers is a set of providers that only grows. They are few, so that it is
// copied for each new one, and looked up in without a lock.
type providers struct {
	set atomic.Pointer[map[registry.ProviderID]struct{}]
}

func (p *providers) has(id registry.ProviderID) bool {
	set := p.set.Load()
	if set == nil {
		return false
	}
	_, ok := (*set)[id]
	return ok
}

func (p *providers) add(id registry.ProviderID) {
	for !p.has(id) {
		next, old := make(map[registry.ProviderID]struct{}), p.set.Load()
		if old != nil {
			maps.Copy(next, *old)
		}
		next[id] = struct{}{}
		p.set.CompareAndSwap(old, &next)
	}
}

// warnSilent logs, once for each, the providers whose services take their
// endpoints from load assignments, but none of whose registries ever called the
// server: all their clusters stay empty. A provider is not silent either if
// another reports endpoints for it: services may name a provider that is not their
// registry's.
//
// It is called when the services of the table have been read. A
// registry that makes batches has reported what it shows by then; one that makes
// none may be between the two, and is warned of if this is its first report.
func (p *servicesProvider) warnSilent() {
	reported := make(map[registry.ProviderID]bool)
	silent := func(id registry.ProviderID) bool {
		if _, known := reported[id]; !known {
			reported[id] = p.index.HasReported(id)
		}
		return !reported[id] && !p.warned.has(id)
	}
	example := make(map[registry.ProviderID]*registry.Service) // nil: not silent
	for _, h := range p.table.hosts.All() {
		for _, v := range h.variants {
			for _, svc := range v.services {
				id := svc.Attributes.Provider
				if id == "" || svc.Resolution != registry.ClientSideLB || !silent(id) {
					continue
				}
				first, known := example[id]
				switch {
				case v.endpoints.Len() > 0:
					example[id] = nil
				case !known || first != nil && registry.CompareServices(svc, first) < 0:
					example[id] = svc
				}
			}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(example)) {
		if svc := example[id]; svc != nil {
			p.warned.add(id)
			p.logger.Warn("a registry shows services but never reported endpoints to this server, so that their clusters stay empty: "+
				"give the registry this server as its updater", slog.String("provider", string(id)),
				slog.String("host", string(svc.Hostname)), slog.String("namespace", svc.Attributes.Namespace))
		}
	}
}
