// SPDX-License-Identifier: Apache-2.0

package services

import (
	"maps"
	"slices"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/failure"
)

// outdated are the hosts that may differ from the state of the registries, because no push of them
// was requested. Each moment is compared with the previous one, at the cost of the changes.
type outdated struct {
	hosts map[registry.Hostname]struct{}
	// hosts is complete for the state in services and endpoints.
	services  *registry.ServiceSet
	endpoints *xdsupdate.EndpointSnapshot
}

// advance adds the hosts that differ in a moment.
func (o *outdated) advance(services Reader, endpoints *xdsupdate.EndpointSnapshot) {
	if o.hosts == nil {
		o.hosts = make(map[registry.Hostname]struct{})
	}
	for name := range endpoints.ChangedSince(o.endpoints) {
		o.hosts[name] = struct{}{}
	}
	o.endpoints = endpoints
	if set := services.set; set != nil {
		for name := range set.ChangedSince(o.services) {
			o.hosts[name] = struct{}{}
		}
		o.services = set
	}
}

// Build rebuilds the hosts of a push from the services and endpoints of its moment. Hosts that were
// built from the same services and endpoints stay.
func (b *Builder) Build(req *xdsupdate.PushRequest, services Reader, endpoints *xdsupdate.EndpointSnapshot) *Built {
	b.Built = Built{}
	b.outdated.advance(services, endpoints)
	full := req.Full || req.Everything()
	b.Incomplete = full && !services.ok
	full = full && services.ok
	hosts := make(map[registry.Hostname]*host)
	for _, name := range b.hostsOf(req) {
		b.failures.Add(failure.Part{In: failure.InHost, Name: string(name)}.Call(func() error {
			b.buildHost(name, services, endpoints.Service, full, hosts)
			return nil
		}))
	}
	b.Next = b.table.with(hosts)
	return &b.Built
}

// buildHost rebuilds a host, or only its endpoints, and puts it into hosts if it has changed.
func (b *Builder) buildHost(
	name registry.Hostname, services Reader, endpoints endpointsOf, full bool, hosts map[registry.Hostname]*host,
) {
	before := b.table.host(name)
	var of []*registry.Service
	if full {
		of = services.of(name)
	} else if before != nil {
		of = before.madeOf
	}
	after := newHost(before, of, endpoints)
	if full || services.ok && after.isMadeOf(services.of(name), endpoints) {
		b.current = append(b.current, name)
	}
	if before == after {
		return
	}
	names, omitted := b.Affected, appendLeftOut(b.leftOut, before, after)
	refreshed := before != nil && after != nil && after.hasServices(before.madeOf)
	if refreshed {
		names = appendAffectedByEndpoints(names, before, after)
	} else {
		names = appendAffected(names, before, after)
	}
	changed := ChangedHost{name, refreshed || sameServices(before, after)}
	hosts[name], b.Affected, b.leftOut, b.Changed = after, names, omitted, append(b.Changed, changed)
}

// hostsOf returns the names of the hosts that a request names, sorted.
func (b *Builder) hostsOf(req *xdsupdate.PushRequest) []registry.Hostname {
	if req.Everything() {
		return slices.Sorted(maps.Keys(b.outdated.hosts))
	}
	var out []registry.Hostname
	for key := range req.ConfigsUpdated {
		if xdsupdate.IsServiceKey(key) {
			out = append(out, registry.Hostname(key.Name))
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
