// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"errors"
	"math"
	"strconv"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/internal/xdsbuild"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/objects"
)

// leftOutErrors are the errors for parts of objects that are left out of resources, by object.
type leftOutErrors map[configstore.ConfigKey][]*LeftOutError

func newLeftOutErrors(errs []error) leftOutErrors {
	out := make(leftOutErrors)
	for _, err := range errs {
		if part, ok := errors.AsType[*LeftOutError](err); ok {
			key := configstore.ConfigKey{Kind: part.Kind, Namespace: part.Namespace, Name: part.Name}
			out[key] = append(out[key], part)
		}
	}
	return out
}

// routerErrors returns the errors of all route configurations and listeners of a Gateway's routers.
func (f *findings) routerErrors(g *objects.Gateway) leftOutErrors {
	p := f.routerFor(g)
	return f.errors.Get(p, func() leftOutErrors {
		var out []error
		for _, name := range f.gatewayRouteNames(p) {
			_, errs := f.gatewayRoutes(p, name)
			out = append(out, errs...)
		}
		for _, l := range f.listenersFor(g) {
			_, errs := f.filterChains(p, l, f.protectionOf(p))
			out = append(out, errs...)
		}
		return newLeftOutErrors(out)
	})
}

// sidecarErrors returns the errors of the route configurations of sidecars in a namespace, which
// exceed limits.
func (f *findings) sidecarErrors(namespace string) leftOutErrors {
	if f.meshHasRoom() {
		return nil
	}
	p := f.proxies.Get("sidecars of "+namespace, func() *proxy { return &proxy{Proxy: objects.Proxy{Namespace: namespace}} })
	return f.errors.Get(p, func() leftOutErrors {
		var out []error
		for _, name := range append(f.outboundRouteNames(p), strconv.Itoa(unknownHostPort)) {
			_, errs := f.outboundRoutes(p, name)
			out = append(out, errs...)
		}
		return newLeftOutErrors(out)
	})
}

// measureMesh reports whether all VirtualServices of the mesh, each with every service it may apply
// to, are within the limits together. Then no sidecar can exceed them, and the route configurations
// need not be built, which would cost the number of namespaces times the number of services.
func (f *findings) measureMesh() bool {
	limits := f.settings.limits
	hosts, bytes := 0, 0
	for _, v := range f.Finder.BoundTo(objects.MeshGateway) {
		built := f.checkedRules(v)
		size := max(2*built.bytes+moreBytes*built.routes, leastBytes*f.MatchesOf(v))
		times := 0
		for _, h := range v.Hosts {
			times += 1 + f.portsOf(h)
		}
		hosts += len(v.Hosts)
		bytes += times * size
		if exceeds(built.routes, limits.Routes) || exceeds(f.MatchesOf(v), limits.Matches) || exceeds(size, limits.RouteBytes) ||
			exceeds(times*size, limits.RepeatedBytes) || exceeds(bytes, limits.SharedBytes) || exceeds(hosts, limits.VirtualHosts) {
			return false
		}
	}
	return true
}

// moreBytes bounds the additional size of a route for clients outside the VirtualService's
// namespace: an alias has another host, and a consistent hash may be added.
const moreBytes = 256

// portsOf returns the total number of ports of the services that a host covers.
func (f *findings) portsOf(host registry.Hostname) int {
	n := 0
	for svc := range f.servicesOf(host) {
		n += len(svc.Ports)
	}
	return n
}

// unhindered returns a proxy of a namespace that sees services without a Sidecar's restrictions.
func unhindered(namespace string) *proxy {
	return &proxy{Proxy: objects.Proxy{Role: objects.Router, Namespace: namespace}}
}

// checkedRules are upper bounds for the number of routes of a VirtualService in a virtual host and for
// their size, and the errors for rules that would be rejected or exceed limits.
type checkedRules struct {
	routes, bytes int
	leftOut       leftOutErrors
}

func (f *findings) checkedRules(v *objects.VirtualService) checkedRules {
	return f.checked.Get(v, func() checkedRules {
		out, limits := checkedRules{routes: math.MaxInt32}, f.settings.limits
		_, _, errs := f.allRuleRoutes(unhindered(v.Namespace), v, place{gateway: objects.MeshGateway, port: unknownHostPort},
			func(scope *xdsbuild.RouteScope, rules []*networking.HTTPRoute) []*routev3.Route {
				everywhere := scope.CheckRules(rules)
				out.routes, out.bytes = len(everywhere), sizeOf(everywhere)
				if exceeds(out.routes, limits.Routes) || exceeds(out.bytes, limits.RouteBytes) {
					return scope.Routes(rules)
				}
				return everywhere
			})
		out.leftOut = newLeftOutErrors(errs)
		return out
	})
}
