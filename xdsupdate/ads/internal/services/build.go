// SPDX-License-Identifier: Apache-2.0

package services

import (
	"iter"
	"maps"
	"slices"

	"github.com/pilotkit/pilotkit/internal/xdsbuild"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/failure"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// advance adds the hosts that differ in a moment to the outdated ones.
func (b *Builder) advance(services *registry.ServiceSet, endpoints *xdsupdate.EndpointSnapshot) {
	for name := range endpoints.ChangedSince(b.endpoints) {
		b.outdated[name] = struct{}{}
	}
	b.endpoints = endpoints
	if services != nil {
		for name := range services.ChangedSince(b.services) {
			b.outdated[name] = struct{}{}
		}
		b.services = services
	}
}

// doubtAll adds all hosts to the outdated ones, because a list does not show changes.
func (b *Builder) doubtAll(list []*registry.Service) {
	for name := range b.table.hosts.All() {
		b.outdated[name] = struct{}{}
	}
	for _, svc := range list {
		b.outdated[svc.Hostname] = struct{}{}
	}
}

// Build rebuilds the hosts of a push from the services and endpoints of its moment. Hosts that were
// built from the same services and endpoints stay.
func (b *Builder) Build(req *xdsupdate.PushRequest, services Reader, endpoints *xdsupdate.EndpointSnapshot) *Built {
	b.Built = Built{}
	b.advance(services.set, endpoints)
	if req.Everything() && services.ok && services.set == nil {
		b.doubtAll(services.list)
	}
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
	changed := ChangedHost{name, refreshed || before != nil && after != nil && slices.EqualFunc(before.variants, after.variants, (*variant).sameServices)}
	hosts[name], b.Affected, b.leftOut, b.Changed = after, names, omitted, append(b.Changed, changed)
}

// hostsOf returns the names of the hosts that a request names, sorted.
func (b *Builder) hostsOf(req *xdsupdate.PushRequest) []registry.Hostname {
	if req.Everything() {
		return slices.Sorted(maps.Keys(b.outdated))
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

// appendAffected appends the names of all resources that may differ between two states of a host,
// each of which may be nil. A name may occur twice.
func appendAffected(out []Affected, before, after *host) []Affected {
	routes := !sameRoutes(before, after)
	for p := range ports(before, after) {
		host, number, in := p.service.Hostname, p.port.Number, namespacesOf(p.service)
		add := func(typeURL, name string) {
			out = append(out, Affected{typeURL, name, in})
		}
		add(envoy.ClusterType, p.cluster)
		add(envoy.LoadAssignmentType, p.cluster)
		add(envoy.ListenerType, envoy.ListenerName(number, host))
		add(envoy.ListenerType, string(host))
		add(envoy.RouteType, p.cluster)
		if routes && p.port.Protocol.IsHTTP() {
			add(envoy.RouteType, envoy.HTTPRouteName(number))
		}
	}
	return out
}

// anyNamespace stands for a namespace that no exportTo names.
const anyNamespace = "*"

// namespacesOf returns the namespaces that may see a service, nil for all.
func namespacesOf(svc *registry.Service) []string {
	if svc.VisibleIn(anyNamespace) {
		return nil
	}
	out := []string{svc.Attributes.Namespace}
	for _, to := range svc.Attributes.ExportTo {
		out = append(out, string(to))
	}
	return out
}

// appendAffectedByEndpoints is appendAffected for hosts that differ only in endpoints.
func appendAffectedByEndpoints(out []Affected, before, after *host) []Affected {
	for i, v := range after.variants {
		if v.endpoints == before.variants[i].endpoints {
			continue
		}
		for _, p := range v.ports {
			dns, in := p.service.Resolution.IsDNS(), namespacesOf(p.service)
			if dns || !sameIdentities(before.variants[i].endpoints, v.endpoints) {
				out = append(out, Affected{envoy.ClusterType, p.cluster, in})
			}
			if !dns {
				out = append(out, Affected{envoy.LoadAssignmentType, p.cluster, in})
			}
		}
	}
	return out
}

// ports yields the ports of all variants of hosts, which may be nil.
func ports(hosts ...*host) iter.Seq[*port] {
	return func(yield func(*port) bool) {
		for _, h := range hosts {
			if h == nil {
				continue
			}
			for _, v := range h.variants {
				for _, p := range v.ports {
					if !yield(p) {
						return
					}
				}
			}
		}
	}
}

// httpPorts returns the numbers of the HTTP ports of a host, which may be nil.
func httpPorts(h *host) []uint32 {
	var out []uint32
	for p := range ports(h) {
		if p.port.Protocol.IsHTTP() && !slices.Contains(out, p.port.Number) {
			out = append(out, p.port.Number)
		}
	}
	return out
}

// sameRoutes reports whether two states of a host, which may be nil, have the same virtual hosts in
// every view: most changes of a service do not affect the route configuration of its port, which
// has thousands of other hosts.
func sameRoutes(a, b *host) bool {
	if a == nil || b == nil {
		return len(httpPorts(a)) == 0 && len(httpPorts(b)) == 0
	}
	return slices.EqualFunc(a.variants, b.variants, func(v, w *variant) bool {
		return v.namespace == w.namespace && slices.EqualFunc(v.services, w.services, sameRoutesOfService)
	})
}

func sameRoutesOfService(a, b *registry.Service) bool {
	return a == b || a.Resolution == b.Resolution && a.Headless() == b.Headless() && sameVisibility(a, b) &&
		slices.Equal(xdsbuild.VIPs(a), xdsbuild.VIPs(b)) &&
		maps.EqualFunc(a.ClusterVIPs, b.ClusterVIPs, slices.Equal) &&
		slices.EqualFunc(a.Ports, b.Ports, func(p, q *registry.Port) bool {
			return p == q || p.Number == q.Number && p.Protocol == q.Protocol
		})
}
