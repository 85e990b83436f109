// SPDX-License-Identifier: Apache-2.0

package services

import (
	"iter"
	"maps"
	"slices"

	"github.com/pilotkit/pilotkit/internal/xdsbuild"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// Affected is a resource that may have changed, by type and name.
type Affected struct{ TypeURL, Name string }

// appendAffected appends the names of all resources that may differ between two states of a host,
// each of which may be nil. A name may occur twice.
func appendAffected(out []Affected, before, after *host) []Affected {
	routes := !sameRoutes(before, after)
	for p, cluster := range ports(before, after) {
		host, number := p.service.Hostname, p.port.Number
		out = append(
			out,
			Affected{envoy.ClusterType, cluster},
			Affected{envoy.LoadAssignmentType, cluster},
			Affected{envoy.ListenerType, envoy.ListenerName(number, host)},
			Affected{envoy.ListenerType, string(host)},
			Affected{envoy.RouteType, cluster},
		)
		if routes && p.port.Protocol.IsHTTP() {
			out = append(out, Affected{envoy.RouteType, envoy.HTTPRouteName(number)})
		}
	}
	return out
}

// appendAffectedByEndpoints is appendAffected for hosts that differ only in endpoints: unchanged
// ports are identical.
func appendAffectedByEndpoints(out []Affected, before, after *host) []Affected {
	for i, v := range after.variants {
		for j, p := range v.ports {
			if p == before.variants[i].ports[j] {
				continue
			}
			dns := p.service.Resolution.IsDNS()
			if dns || !sameIdentities(before.variants[i].endpoints, v.endpoints) {
				out = append(out, Affected{envoy.ClusterType, v.names[j]})
			}
			if !dns {
				out = append(out, Affected{envoy.LoadAssignmentType, v.names[j]})
			}
		}
	}
	return out
}

// ports yields the ports of all variants of hosts, which may be nil, and the names of their
// clusters.
func ports(hosts ...*host) iter.Seq2[*port, string] {
	return func(yield func(*port, string) bool) {
		for _, h := range hosts {
			if h == nil {
				continue
			}
			for _, v := range h.variants {
				for i, p := range v.ports {
					if !yield(p, v.names[i]) {
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
