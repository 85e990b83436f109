// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"maps"
	"slices"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/failure"
)

// outdated are the hosts that may have been made of something else than the
// registries have now, because nobody has asked for a push of them. Each moment is
// compared with the one before, which costs the work of what has changed.
type outdated struct {
	hosts map[registry.Hostname]struct{}
	// services and endpoints are those up to which hosts is complete. Services that are
	// given as a list are compared only by a push of everything: see listed.
	services  *registry.ServiceSet
	endpoints *xdsupdate.EndpointSnapshot
}

// advance adds what is different in a moment.
func (o *outdated) advance(m *moment) {
	if o.hosts == nil {
		o.hosts = make(map[registry.Hostname]struct{})
	}
	for name := range m.endpoints.ChangedSince(o.endpoints) {
		o.hosts[name] = struct{}{}
	}
	o.endpoints = m.endpoints
	if set := m.services.set; set != nil {
		for name := range set.ChangedSince(o.services) {
			o.hosts[name] = struct{}{}
		}
		o.services = set
	}
}

// published removes hosts that are as the moment has them, when clients can be sent them.
func (o *outdated) published(hosts []registry.Hostname) {
	for _, name := range hosts {
		delete(o.hosts, name)
	}
}

// listed adds the hosts of a table that were made of other services than those in the
// list of a moment.
func (o *outdated) listed(t *table, m *moment) {
	for _, svc := range m.services.list {
		if h := t.host(svc.Hostname); h == nil || !slices.Equal(h.madeOf, m.services.of(svc.Hostname)) {
			o.hosts[svc.Hostname] = struct{}{}
		}
	}
	for name := range t.hosts.All() {
		if len(m.services.of(name)) == 0 {
			o.hosts[name] = struct{}{}
		}
	}
}

// rebuildHosts makes the hosts of a push anew, of the services and endpoints of its
// moment. Hosts that were made of the very same ones stay.
func (p *servicesProvider) rebuildHosts(push *PushContext) {
	req, m := push.Request, push.moment
	p.outdated.advance(m)
	if req.Everything() && m.services.ok && m.services.set == nil {
		p.outdated.listed(p.table, m)
	}
	full := req.Full || req.Everything()
	p.incomplete = full && !m.services.ok
	full = full && m.services.ok
	hosts := make(map[registry.Hostname]*host)
	for _, name := range p.hostsOf(req) {
		p.failures.Add(failure.Part{In: failure.InHost, Name: string(name)}.Call(func() error {
			if changed, ok := p.rebuildHost(name, m, full, hosts); ok {
				push.changed = append(push.changed, changed)
			}
			return nil
		}))
	}
	p.next = p.table.with(hosts)
}

// rebuildHost makes a host anew, or only its endpoints, and puts it into hosts. Not ok:
// it has not changed.
func (p *servicesProvider) rebuildHost(
	name registry.Hostname, m *moment, full bool, hosts map[registry.Hostname]*host,
) (changed ChangedHost, ok bool) {
	before := p.table.host(name)
	var after *host
	if full {
		after = newHost(before, m.services.of(name), m.endpoints.Service, p.customizers)
	} else {
		after = before.refreshed(m.endpoints.Service)
	}
	if full || m.services.ok && after.isMadeOf(m.services.of(name), m.endpoints.Service) {
		p.current = append(p.current, name)
	}
	if before == after {
		return changed, false
	}
	names, omitted := p.names, appendLeftOut(p.leftOut, before, after)
	refreshed := before != nil && after != nil && after.hasServices(before.madeOf)
	if refreshed {
		names = appendAffectedByEndpoints(names, before, after)
	} else {
		names = appendAffected(names, before, after)
	}
	endpointsOnly := refreshed || sameServices(before, after)
	hosts[name], p.names, p.leftOut = after, names, omitted
	return ChangedHost{Hostname: name, EndpointsOnly: endpointsOnly}, true
}

// hostsOf returns the names of the hosts that a request is about, sorted.
func (p *servicesProvider) hostsOf(req *xdsupdate.PushRequest) []registry.Hostname {
	if req.Everything() {
		return slices.Sorted(maps.Keys(p.outdated.hosts))
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
