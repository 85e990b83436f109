// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"errors"
	"math"
	"strconv"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"

	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/internal/guard"
	"github.com/pilotkit/pilotkit/registry"
)

// withoutRoom returns the errors for parts of a VirtualService that exceed the limits of resources
// shared with other VirtualServices, on routers of a Gateway or on sidecars of its namespace.
func (f *findings) withoutRoom(v *virtualService, gateway string) []error {
	at := gateway
	if gateway == meshGateway {
		at = meshGateway + "/" + v.namespace
	}
	found, looked := f.shared[at]
	if !looked {
		found = make(map[objectName][]error)
		for _, err := range f.sharedRoutes(v.namespace, gateway) {
			var part *LeftOutError
			if errors.As(err, &part) && part.Kind == istio.VirtualService {
				name := objectName{part.Namespace, part.Name}
				found[name] = append(found[name], err)
			}
		}
		f.shared[at] = found
	}
	return found[v.objectName]
}

// sharedRoutes returns the errors of the route configurations and listeners of a Gateway's routers,
// or of the route configurations of sidecars in a namespace.
func (f *findings) sharedRoutes(namespace, gateway string) []error {
	var out []error
	if gateway == meshGateway {
		if f.meshHasRoom() {
			return nil
		}
		p := &proxy{namespace: namespace}
		for _, name := range append(f.outboundRouteNames(p), strconv.Itoa(unknownHostPort)) {
			_, errs := f.outboundRoutes(p, name)
			out = append(out, errs...)
		}
		return out
	}
	for _, g := range f.gateways {
		if g.String() != gateway {
			continue
		}
		p := f.routerFor(g)
		for _, name := range f.gatewayRouteNames(p) {
			_, errs := f.gatewayRoutes(p, name)
			out = append(out, errs...)
		}
		for _, l := range f.listenersFor(g) {
			_, errs := f.filterChains(p, l, f.protectionOf(p))
			out = append(out, errs...)
		}
	}
	return out
}

// meshHasRoom reports whether all VirtualServices of the mesh, each with every service it may apply
// to, are within the limits together. Then no sidecar can exceed them, and the route configurations
// need not be built, which would cost the number of namespaces times the number of services.
func (f *findings) meshHasRoom() bool {
	if !f.measured {
		f.measured, f.room = true, f.measureMesh()
	}
	return f.room
}

func (f *findings) measureMesh() bool {
	limits := f.settings.limits
	hosts, bytes := 0, 0
	for _, v := range f.byGateway[meshGateway] {
		routes, size := f.most(v)
		times := 0
		for _, h := range v.hosts {
			times += 1 + f.portsOf(h)
		}
		hosts += len(v.hosts)
		bytes += times * size
		if exceeds(routes, limits.Routes) || exceeds(f.matchesOf(v), limits.Matches) || exceeds(size, limits.RouteBytes) ||
			exceeds(times*size, limits.RepeatedBytes) || exceeds(bytes, limits.SharedBytes) || exceeds(hosts, limits.VirtualHosts) {
			return false
		}
	}
	return true
}

// moreBytes bounds the additional size of a route for clients outside the VirtualService's
// namespace: an alias has another host, and a consistent hash may be added.
const moreBytes = 256

// most returns upper bounds for the number of routes of a VirtualService and for their size in
// bytes.
func (f *findings) most(v *virtualService) (routes, bytes int) {
	var list []*routev3.Route
	scope := f.rulesScope(unhindered(v.namespace), v, place{gateway: meshGateway, port: unknownHostPort})
	if p := guard.Call(func() { list = scope.CheckRules(f.rulesOf(v)) }); p != nil {
		return math.MaxInt32, math.MaxInt32
	}
	return len(list), max(2*sizeOf(list)+moreBytes*len(list), leastBytes*f.matchesOf(v))
}

// portsOf returns the total number of ports of the services that a host covers.
func (f *findings) portsOf(host registry.Hostname) int {
	n := 0
	for svc := range f.servicesOf(host) {
		n += len(svc.Ports)
	}
	return n
}
