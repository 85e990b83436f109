// SPDX-License-Identifier: Apache-2.0

package services

import (
	"log/slog"
	"maps"
	"slices"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// warnSilent logs each silent provider once.
//
// It is called after a push has read all services. By then, a registry that makes batches has
// reported the endpoints of its services. A registry without batches may be between the two calls
// of its first report, and then gets a warning.
func (b *Builder) warnSilent() {
	for _, svc := range b.table.silentSince(b.index, b.warned) {
		id := svc.Attributes.Provider
		if b.warned == nil {
			b.warned = make(map[registry.ProviderID]bool)
		}
		b.warned[id] = true
		b.logger.Warn("a registry shows services but never reported endpoints to this server, so that their clusters stay empty: "+
			"give the registry this server as its updater", slog.String("provider", string(id)),
			slog.String("host", string(svc.Hostname)), slog.String("namespace", svc.Attributes.Namespace))
	}
}

// Silent returns one service of each provider that has services but never reported endpoints to the
// index, sorted by provider.
func (t *Table) Silent(index *xdsupdate.EndpointIndex) []*registry.Service {
	return t.silentSince(index, nil)
}

// silentSince is Silent without the providers that are known to be silent.
func (t *Table) silentSince(index *xdsupdate.EndpointIndex, known map[registry.ProviderID]bool) (out []*registry.Service) {
	reported := make(map[registry.ProviderID]bool)
	silent := func(id registry.ProviderID) bool {
		if _, asked := reported[id]; !asked {
			reported[id] = known[id] || index.HasReported(id)
		}
		return !reported[id]
	}
	example := make(map[registry.ProviderID]*registry.Service) // nil if the provider is not silent
	for _, h := range t.hosts.All() {
		for _, v := range h.variants {
			for _, svc := range v.services {
				id := svc.Attributes.Provider
				if id == "" || svc.Resolution != registry.ClientSideLB || !silent(id) {
					continue
				}
				first, found := example[id]
				switch {
				case v.endpoints.Len() > 0:
					example[id] = nil
				case !found || first != nil && registry.CompareServices(svc, first) < 0:
					example[id] = svc
				}
			}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(example)) {
		if example[id] != nil {
			out = append(out, example[id])
		}
	}
	return out
}
