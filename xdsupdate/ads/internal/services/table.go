// SPDX-License-Identifier: Apache-2.0

package services

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"sync"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/proto"

	"github.com/pilotkit/pilotkit/internal/pmap"
	"github.com/pilotkit/pilotkit/internal/xdsbuild"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/resource"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// Table has the resources of services, at one moment. It is immutable: a push makes another one,
// which shares unchanged parts, so that new selections and providers read it without a lock.
type Table struct {
	hosts pmap.Map[registry.Hostname, *host]
	// http holds the hosts with an HTTP port, by port number.
	http map[uint32]*httpPort
}

// httpPort has the HTTP services on one port.
type httpPort struct {
	hosts pmap.Map[registry.Hostname, struct{}]

	mu sync.Mutex
	// routes are the route configurations that were looked up. Of a view, they depend only on the
	// location of the proxy.
	routes map[routesKey]*resource.State
}

type routesKey struct {
	namespace string
	cluster   registry.ClusterID
	addresses Addresses
}

// with returns the table with changed hosts; nil removes a host.
func (t *Table) with(hosts map[registry.Hostname]*host) *Table {
	if len(hosts) == 0 {
		return t
	}
	out := &Table{http: t.http}
	http := make(map[uint32]*pmap.Live[registry.Hostname, struct{}])
	live := t.hosts.Live()
	for name, after := range hosts {
		before := t.host(name)
		if after == nil {
			live.Delete(name)
		} else {
			live.Set(name, after)
		}
		if sameRoutes(before, after) {
			continue
		}
		now := httpPorts(after)
		for _, number := range slices.Concat(httpPorts(before), now) {
			set := http[number]
			if set == nil {
				set = t.http[number].live()
				http[number] = set
			}
			if slices.Contains(now, number) {
				set.Set(name, struct{}{})
			} else {
				set.Delete(name)
			}
		}
	}
	out.hosts = live.Snapshot()
	if len(http) == 0 {
		return out
	}
	out.http = make(map[uint32]*httpPort, len(t.http))
	maps.Copy(out.http, t.http)
	for number, set := range http {
		if out.http[number] = (&httpPort{hosts: set.Snapshot()}); set.Len() == 0 {
			delete(out.http, number)
		}
	}
	return out
}

// live returns a modifiable set of the hosts of a port, which may be nil.
func (p *httpPort) live() *pmap.Live[registry.Hostname, struct{}] {
	if p == nil {
		return &pmap.Live[registry.Hostname, struct{}]{}
	}
	return p.hosts.Live()
}

// host returns a host, or nil.
func (t *Table) host(name registry.Hostname) *host {
	h, _ := t.hosts.Get(name)
	return h
}

// Lookup returns the resource of a type and name for a view. The result may be nil, or a resource
// that does not exist.
func (t *Table) Lookup(v View, typeURL, name string) *resource.State {
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
	if p := t.host(hostname).seenBy(v).port(number, v); p != nil {
		return p.resource(typeURL, name, v)
	}
	return nil
}

// httpRoutes returns the route configuration of all HTTP services on a port that a view sees.
func (t *Table) httpRoutes(v View, number uint32) *resource.State {
	on := t.http[number]
	if on == nil {
		return nil
	}
	on.mu.Lock()
	defer on.mu.Unlock()
	key := routesKey{v.Namespace, v.Cluster, v.Addresses}
	r, made := on.routes[key]
	if !made {
		r = t.newHTTPRoutes(v, number, on)
		if on.routes == nil {
			on.routes = make(map[routesKey]*resource.State)
		}
		on.routes[key] = r
	}
	return r
}

func (t *Table) newHTTPRoutes(v View, number uint32, on *httpPort) *resource.State {
	type entry struct {
		port *port
		vips []string
	}
	var entries []entry
	for name := range on.hosts.All() {
		seen := t.host(name).seenBy(v)
		if p := seen.port(number, v); p != nil {
			entries = append(entries, entry{p, seen.vips(v)})
		}
	}
	if len(entries) == 0 {
		return nil
	}
	slices.SortFunc(entries, func(a, b entry) int { return cmp.Compare(a.port.service.Hostname, b.port.service.Hostname) })
	return &resource.State{TypeURL: envoy.RouteType, Name: envoy.HTTPRouteName(number), Build: func() (proto.Message, error) {
		var hosts []*routev3.VirtualHost
		for _, e := range entries {
			if vh := xdsbuild.VirtualHost(e.port.service, e.port.port, e.vips); vh != nil {
				hosts = append(hosts, vh)
			}
		}
		if len(hosts) == 0 {
			return nil, nil
		}
		return xdsbuild.HTTPRoutes(number, hosts), nil
	}}
}

// All yields every name that a wildcard subscription to a type covers, with its resource.
func (t *Table) All(v View, typeURL string) iter.Seq2[string, *resource.State] {
	return func(yield func(string, *resource.State) bool) {
		t.covered(v, typeURL)(func(name string, p *port) bool { return yield(name, p.resource(typeURL, name, v)) })
	}
}

// Names yields every name that a wildcard subscription to a type covers.
func (t *Table) Names(v View, typeURL string) iter.Seq[string] {
	return func(yield func(string) bool) {
		t.covered(v, typeURL)(func(name string, _ *port) bool { return yield(name) })
	}
}

// IsCovered reports whether wildcard subscriptions to a type cover the resources of services: all
// clusters and load assignments. API listeners and routes are sent by name only, because Envoy
// accepts no API listener from a server.
func IsCovered(typeURL string) bool {
	return typeURL == envoy.ClusterType || typeURL == envoy.LoadAssignmentType
}

// covered yields the names that a wildcard subscription to a type covers, with their ports.
func (t *Table) covered(v View, typeURL string) iter.Seq2[string, *port] {
	return func(yield func(string, *port) bool) {
		if !IsCovered(typeURL) {
			return
		}
		for _, h := range t.hosts.All() {
			seen := h.seenBy(v)
			if seen == nil {
				continue
			}
			for _, p := range seen.ports {
				if p != seen.port(p.port.Number, v) {
					continue // another port with the number, for other views
				}
				if p.cluster != "" && !yield(p.cluster, p) {
					return
				}
			}
		}
	}
}

// Services yields all services, host by host.
func (t *Table) Services() iter.Seq[*registry.Service] {
	return func(yield func(*registry.Service) bool) {
		for _, h := range t.hosts.All() {
			for _, v := range h.variants {
				for _, s := range v.services {
					if !yield(s) {
						return
					}
				}
			}
		}
	}
}

// ServicesNamed returns the services of a host name, sorted by ComparePrecedence, or nil if there
// are none.
func (t *Table) ServicesNamed(hostname registry.Hostname) []*registry.Service {
	h := t.host(hostname)
	if h == nil {
		return nil
	}
	var out []*registry.Service
	for _, v := range h.variants {
		out = append(out, v.services...)
	}
	slices.SortStableFunc(out, registry.ComparePrecedence)
	return out
}

// ServicesSeen returns the services of a host name that a view sees, or nil if there are none.
func (t *Table) ServicesSeen(view View, hostname registry.Hostname) []*registry.Service {
	seen := t.host(hostname).seenBy(view)
	if seen == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(seen.services), func(s *registry.Service) bool { return !s.VisibleIn(view.Namespace) })
}

// Endpoints returns the endpoints of a service, or nil if there are none.
func (t *Table) Endpoints(hostname registry.Hostname, namespace string) *xdsupdate.ServiceEndpoints {
	if v := t.host(hostname).in(namespace); v != nil {
		return v.endpoints
	}
	return nil
}

// View has the properties of a proxy on which the resources of services depend.
type View struct {
	Namespace string
	Cluster   registry.ClusterID
	Client    envoy.Client
	Addresses Addresses
}

// Addresses are the addresses of services that a proxy can use. If neither family is set, the
// families are unknown, which counts as both.
type Addresses struct {
	IPv4, IPv6 bool
	// Allocated means that the proxy answers DNS queries with automatically allocated addresses.
	Allocated bool
}

// AddressesOf returns the addresses under which the proxies of the view reach a service.
func (v View) AddressesOf(svc *registry.Service) []string {
	proxy := registry.Proxy{ClusterID: v.Cluster, DNSCapture: v.Addresses.Allocated, DNSAutoAllocate: v.Addresses.Allocated}
	if v.Addresses.IPv4 {
		proxy.IPAddresses = append(proxy.IPAddresses, "0.0.0.0")
	}
	if v.Addresses.IPv6 {
		proxy.IPAddresses = append(proxy.IPAddresses, "::")
	}
	return svc.AddressesFor(&proxy)
}
