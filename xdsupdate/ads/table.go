// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"iter"
	"maps"
	"slices"

	"google.golang.org/protobuf/proto"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// table is everything that can be served. The caller synchronises.
type table struct {
	hosts map[registry.Hostname]*host
	// http holds the hosts with an HTTP port, by port number.
	http map[uint32]map[registry.Hostname]struct{}
}

func newTable() table {
	return table{
		hosts: make(map[registry.Hostname]*host),
		http:  make(map[uint32]map[registry.Hostname]struct{}),
	}
}

// set replaces a host; nil removes it.
func (t *table) set(name registry.Hostname, h *host) {
	for _, number := range httpPorts(t.hosts[name]) {
		delete(t.http[number], name)
		if len(t.http[number]) == 0 {
			delete(t.http, number)
		}
	}
	if h == nil {
		delete(t.hosts, name)
		return
	}
	t.hosts[name] = h
	for _, number := range httpPorts(h) {
		if t.http[number] == nil {
			t.http[number] = make(map[registry.Hostname]struct{})
		}
		t.http[number][name] = struct{}{}
	}
}

// lookup returns the resource of a type and name for a view. The result may be
// nil, or a resource that does not exist.
func (t *table) lookup(v *view, typeURL, name string) *resource {
	if r, made := v.overlay[typeURL][name]; made {
		return r
	}
	var number uint32
	var hostname registry.Hostname
	ok := false
	switch typeURL {
	case envoy.ClusterType, envoy.LoadAssignmentType:
		number, hostname, ok = envoy.ParseClusterName(name)
	case envoy.ListenerType:
		number, hostname, ok = envoy.ParseListenerName(name)
	case envoy.RouteType:
		if p, http := envoy.ParseHTTPRouteName(name); http {
			return t.httpRoutes(v, p)
		}
		number, hostname, ok = envoy.ParseClusterName(name)
	}
	if !ok {
		return nil
	}
	if p := t.hosts[hostname].seenBy(v.View).port(number, v.View); p != nil {
		return p.resource(typeURL, name, v.View)
	}
	return nil
}

// httpRoutes returns the route configuration of all HTTP services on a port that
// a view sees.
func (t *table) httpRoutes(v *view, number uint32) *resource {
	if r := v.routes[number]; r != nil {
		return r
	}
	type entry struct {
		port *port
		vips []string
	}
	var entries []entry
	for _, name := range slices.Sorted(maps.Keys(t.http[number])) {
		seen := t.hosts[name].seenBy(v.View)
		if p := seen.port(number, v.View); p != nil {
			entries = append(entries, entry{p, seen.vips(v.View)})
		}
	}
	if len(entries) == 0 {
		return nil
	}
	r := &resource{typeURL: envoy.RouteType, name: envoy.HTTPRouteName(number), build: func() proto.Message {
		var hosts []*routev3.VirtualHost
		for _, e := range entries {
			if vh := envoy.VirtualHost(e.port.service, e.port.port, e.vips); vh != nil {
				hosts = append(hosts, vh)
			}
		}
		if len(hosts) == 0 {
			return nil
		}
		return envoy.HTTPRoutes(number, hosts)
	}}
	if v.routes == nil {
		v.routes = make(map[uint32]*resource)
	}
	v.routes[number] = r
	return r
}

// names calls f for every name that a wildcard subscription to a type covers:
// all clusters or load assignments, and what generators made. API listeners and
// routes are for those who ask for them by name: Envoy takes no API listener
// from a server.
func (t *table) names(v *view, typeURL string, f func(name string)) {
	if wildcardBuiltIn(typeURL) {
		for hostname, h := range t.hosts {
			seen := h.seenBy(v.View)
			if seen == nil {
				continue
			}
			for _, p := range seen.ports {
				if p.service.VisibleIn(v.Namespace) {
					f(envoy.ClusterName(p.port.Number, hostname))
				}
			}
		}
	}
	for name := range v.overlay[typeURL] {
		f(name)
	}
}

func wildcardBuiltIn(typeURL string) bool {
	return typeURL == envoy.ClusterType || typeURL == envoy.LoadAssignmentType
}

// resourceName is the name of a resource of a type.
type resourceName struct{ typeURL, name string }

// affected returns the names of all built-in resources that may differ between
// two states of a host, each of which may be nil.
func affected(before, after *host, endpointsOnly bool) map[resourceName]struct{} {
	if endpointsOnly {
		return affectedByEndpoints(before, after)
	}
	out := make(map[resourceName]struct{})
	for p := range ports(before, after) {
		cluster := envoy.ClusterName(p.port.Number, p.service.Hostname)
		out[resourceName{envoy.ClusterType, cluster}] = struct{}{}
		out[resourceName{envoy.LoadAssignmentType, cluster}] = struct{}{}
		out[resourceName{envoy.ListenerType, envoy.ListenerName(p.port.Number, p.service.Hostname)}] = struct{}{}
		out[resourceName{envoy.ListenerType, string(p.service.Hostname)}] = struct{}{}
		out[resourceName{envoy.RouteType, cluster}] = struct{}{}
		if p.port.Protocol.IsHTTP() {
			out[resourceName{envoy.RouteType, envoy.HTTPRouteName(p.port.Number)}] = struct{}{}
		}
	}
	return out
}

// affectedByEndpoints is affected for hosts that differ in endpoints only:
// ports that do not are the same.
func affectedByEndpoints(before, after *host) map[resourceName]struct{} {
	old := make(map[*port]struct{})
	for p := range ports(before) {
		old[p] = struct{}{}
	}
	out := make(map[resourceName]struct{})
	for p := range ports(after) {
		if _, same := old[p]; same {
			continue
		}
		typeURL := envoy.LoadAssignmentType
		if p.service.Resolution.IsDNS() {
			typeURL = envoy.ClusterType
		}
		out[resourceName{typeURL, envoy.ClusterName(p.port.Number, p.service.Hostname)}] = struct{}{}
	}
	return out
}

// ports returns the ports of all variants of hosts, which may be nil.
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
