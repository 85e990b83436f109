// SPDX-License-Identifier: Apache-2.0

package services

import (
	"log/slog"
	"maps"
	"slices"

	"github.com/pilotkit/pilotkit/internal/xdsbuild"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// leftOut is an endpoint, or a port of a service, that no client is sent, because Envoy would
// reject others with it.
type leftOut struct {
	leftOutKey
	hostname registry.Hostname
	reason   error
}

// leftOutKey identifies a leftOut of a host. An address counts once in a namespace, for all ports and other
// properties of its endpoint, because the address is the invalid part.
type leftOutKey struct {
	namespace string
	port      uint32 // or 0
	address   string // or ""
}

// eachLeftOut visits the endpoints and ports that are left out of a host; a nil host has none.
func (h *host) eachLeftOut(visit func(leftOut)) {
	if h == nil {
		return
	}
	for _, v := range h.variants {
		for _, p := range v.ports {
			if err := xdsbuild.CheckPort(p.service, p.port); err != nil {
				visit(leftOut{leftOutKey{namespace: v.namespace, port: p.port.Number}, h.name, err})
			}
			for _, e := range p.leftOut {
				visit(leftOut{leftOutKey{namespace: v.namespace, address: e.Address()}, h.name, xdsbuild.CheckEndpoint(e)})
			}
		}
	}
}

// appendLeftOut appends the endpoints and ports that are left out of a host, and were not left out of its previous
// state; each state may be nil.
// So the reported entries are derived from the table, and end with the endpoint or port.
func appendLeftOut(out []leftOut, before, after *host) []leftOut {
	var reported map[leftOutKey]bool // most hosts need none
	after.eachLeftOut(func(l leftOut) {
		if reported == nil {
			reported = make(map[leftOutKey]bool)
			before.eachLeftOut(func(l leftOut) { reported[l.leftOutKey] = true })
		}
		if !reported[l.leftOutKey] {
			reported[l.leftOutKey], out = true, append(out, l)
		}
	})
	return out
}

// warnLeftOut logs endpoints and ports that are left out.
func (b *Builder) warnLeftOut(list []leftOut) {
	for _, l := range list {
		where := []any{slog.String("host", string(l.hostname)), slog.String("namespace", l.namespace), slog.Any("reason", l.reason)}
		if l.address != "" {
			b.logger.Warn("endpoint left out", where...)
		} else {
			b.logger.Warn("port left out", where...)
		}
	}
}

// warnSilent logs each silent provider once.
//
// It is called after a push has read all services. By then, a registry that makes batches has
// reported the endpoints of its services. A registry without batches may be between the two calls
// of its first report, and then gets a warning.
func (b *Builder) warnSilent() {
	for _, svc := range b.table.Silent(b.index) {
		id := svc.Attributes.Provider
		if b.warned[id] {
			continue
		}
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
func (t *Table) Silent(index *xdsupdate.EndpointIndex) (out []*registry.Service) {
	example := make(map[registry.ProviderID]*registry.Service) // nil if the provider is not silent
	for _, h := range t.hosts.All() {
		for _, v := range h.variants {
			for _, svc := range v.services {
				id := svc.Attributes.Provider
				if id == "" || svc.Resolution != registry.ClientSideLB {
					continue
				}
				first, found := example[id]
				switch {
				case found && first == nil:
				case v.endpoints.Len() > 0 || !found && index.HasReported(id):
					example[id] = nil
				case !found || registry.CompareServices(svc, first) < 0:
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
