// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"sync"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/internal/xdsbuild"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/memo"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/mesh"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/objects"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/route"
)

// findings collects the ineffective parts of objects. The methods that are named after a kind add
// the findings about one object of that kind, and return its effects as object does.
type findings struct {
	*state
	found []Ineffective
	// fields contains the fields with a finding, without the reason.
	fields map[Ineffective]struct{}

	// errors are the errors of all route configurations of a sidecar.
	errors  memo.Results[*proxy, leftOutErrors]
	routers memo.Results[*proxy, builtRouter]
	checked memo.Results[*objects.VirtualService, checkedRules]
	// meshHasRoom is measureMesh, computed once.
	meshHasRoom func() bool
	// proxies are the routers of Gateways, see routerFor, and the sidecars of namespaces.
	proxies memo.Results[string, *proxy]
	// labelSets are the workloads of namespaces.
	labelSets memo.Results[string, []labelled]

	kind configstore.GroupVersionKind // of the current object
	name objects.ObjectName
}

func newFindings(st *state) *findings {
	f := &findings{state: st, fields: make(map[Ineffective]struct{})}
	f.meshHasRoom = sync.OnceValue(f.measureMesh)
	return f
}

// object adds the findings about an object. It returns a function that lists the effects of the
// object, or nil if it has none.
func (f *findings) object(o objects.Object) (effects func() []Effect) {
	f.about(o)
	switch o := o.(type) {
	case *objects.VirtualService:
		effects = f.virtualService(o)
		f.leftOutRoutes(o)
		if effects != nil {
			f.unusedL4Routes(o)
		}
	case *objects.DestinationRule:
		effects = f.destinationRule(o)
		f.refusedClusters(o)
	case *objects.Gateway:
		effects = f.gateway(o)
		f.addErrors(f.routerErrors(o))
	case *objects.Sidecar:
		effects = f.sidecar(o)
	case *objects.AuthorizationPolicy:
		effects = f.authorizationPolicy(o)
	case *objects.PeerAuthentication:
		effects = f.peerAuthentication(o)
	case *objects.RequestAuthentication:
		effects = f.requestAuthentication(o)
	}
	return effects
}

// about sets the object of the following findings.
func (f *findings) about(o objects.Object) {
	f.kind, f.name = o.Base().Config.GroupVersionKind, o.Base().ObjectName
}

// add records a finding. An empty field stands for the whole object.
func (f *findings) add(field, format string, args ...any) {
	found := Ineffective{Kind: f.kind, Namespace: f.name.Namespace, Name: f.name.Name, Field: field}
	f.fields[found] = struct{}{}
	found.Reason = fmt.Sprintf(format, args...)
	f.found = append(f.found, found)
}

// some reports whether accept returns true for a service with a host name.
func (f *findings) some(host registry.Hostname, accept func(*registry.Service) bool) bool {
	for s := range f.servicesOf(host) {
		if accept(s) {
			return true
		}
	}
	return false
}

// aliased returns the host that a host name is an alias for. It is empty if the host is not an
// alias.
func (f *findings) aliased(host registry.Hostname) registry.Hostname {
	services := f.world.Named(host)
	if len(services) == 0 {
		return ""
	}
	return mesh.TargetOf(services[0])
}

func anyService(*registry.Service) bool { return true }

// leftOutRoutes adds findings for the parts of a VirtualService that are left out of the resources of
// clients. It builds the resources for proxies without distinguishing labels.
func (f *findings) leftOutRoutes(v *objects.VirtualService) {
	f.addErrors(f.checkedRules(v).leftOut)
	for _, name := range v.Gateways {
		if name == objects.MeshGateway {
			f.addErrors(f.sidecarErrors(v.Namespace))
		} else if g := f.GatewayNamed(name); g != nil {
			f.addErrors(f.routerErrors(g))
		}
	}
}

// addErrors adds the errors of resources that name the current object.
func (f *findings) addErrors(errs leftOutErrors) {
	for _, part := range errs[configstore.ConfigKey{Kind: f.kind, Namespace: f.name.Namespace, Name: f.name.Name}] {
		f.addOnce(part.Field, part.Err)
	}
}

// addOnce records a finding unless the field has one already.
func (f *findings) addOnce(field string, reason error) {
	if !f.has(field) {
		f.add(field, "%s", reason)
	}
}

// has reports whether a field of the current object has a finding.
func (f *findings) has(field string) bool {
	_, ok := f.fields[Ineffective{Kind: f.kind, Namespace: f.name.Namespace, Name: f.name.Name, Field: field}]
	return ok
}

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

// builtRouter describes all route configurations and listeners of a router.
type builtRouter struct {
	errors leftOutErrors
	// chains are the origins of the filter chains.
	chains map[route.Origin]struct{}
}

// routerErrors returns the errors of all route configurations and listeners of a Gateway's routers.
func (f *findings) routerErrors(g *objects.Gateway) leftOutErrors { return f.built(g).errors }

// built returns the description of a Gateway's routers.
func (f *findings) built(g *objects.Gateway) builtRouter {
	p := f.routerFor(g)
	return f.routers.Get(p, func() builtRouter {
		var errs []error
		for _, name := range f.gatewayRouteNames(p) {
			_, found := f.gatewayRoutes(p, name)
			errs = append(errs, found...)
		}
		recording := *f.state
		recording.made = &made{}
		for _, l := range f.listenersFor(g) {
			_, found := recording.filterChains(p, l, f.protectionOf(p))
			errs = append(errs, found...)
		}
		out := builtRouter{newLeftOutErrors(errs), make(map[route.Origin]struct{})}
		for _, origin := range recording.made.chains {
			out.chains[origin] = struct{}{}
		}
		return out
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

// labelled stands for all workloads with equal labels.
type labelled struct {
	labels registry.Labels
	// grpc reports whether one of these workloads may be a gRPC server, judging by the protocol of
	// its ports.
	grpc bool
	// ports are the distinct ports of these workloads.
	ports []uint32
}

// workloadsOf returns the workloads of the services in a namespace, grouped by labels. An empty
// namespace stands for all.
func (f *findings) workloadsOf(namespace string) []labelled {
	return f.labelSets.Get(namespace, func() []labelled { return f.labelsIn(namespace) })
}

func (f *findings) labelsIn(namespace string) []labelled {
	seen := make(map[string]int)
	out := []labelled{}
	for svc := range f.world.In(namespace) {
		for e := range f.world.Endpoints(svc).All() {
			labels := e.Attributes().Labels
			i, again := seen[labels.String()]
			if !again {
				i = len(out)
				seen[labels.String()] = i
				out = append(out, labelled{labels: labels})
			}
			out[i].grpc = out[i].grpc || mayServeGRPC(svc, e)
			if !slices.Contains(out[i].ports, e.EndpointPort) {
				out[i].ports = append(out[i].ports, e.EndpointPort)
			}
		}
	}
	return out
}

// mayServeGRPC reports whether an endpoint may be a gRPC server, because a port that it serves has
// the protocol GRPC or HTTP2, or an unspecified one.
func mayServeGRPC(svc *registry.Service, e *registry.Endpoint) bool {
	return slices.ContainsFunc(svc.Ports, func(p *registry.Port) bool {
		grpc := p.Protocol == registry.ProtocolGRPC || p.Protocol == registry.ProtocolHTTP2 || p.Protocol == registry.ProtocolUnsupported
		return grpc && xdsbuild.Serves(e, p)
	})
}

// connectedSidecar stands for the connected sidecars of one view. A policy treats all of them
// alike.
type connectedSidecar struct {
	*proxy
	id string // of the first sidecar
	n  int
}

// sidecarsAmong returns the sidecars among connected proxies, grouped by the view that the named
// provider sees, in the order of the first sidecar in each view.
func (x *provided) sidecarsAmong(connected []ads.ProxyStatus, provider string) (out []*connectedSidecar) {
	byProxy := make(map[*proxy]*connectedSidecar)
	for _, status := range connected {
		p := x.proxy(status.View.SeenBy(provider))
		if p.Role != objects.SidecarProxy {
			continue
		}
		if byProxy[p] == nil {
			byProxy[p] = &connectedSidecar{proxy: p, id: status.ID}
			out = append(out, byProxy[p])
		}
		byProxy[p].n++
	}
	return out
}

// unenforced adds a finding for a policy for the inbound side of connected sidecars, because the
// inbound side is not configured.
func (f *findings) unenforced(o objects.Object, sidecars []*connectedSidecar) {
	selects := f.inboundPolicy(o)
	if selects == nil {
		return
	}
	first, n := "", 0
	for _, s := range sidecars {
		if selects(s.proxy) {
			first, n = cmp.Or(first, s.id), n+s.n
		}
	}
	if n > 0 {
		f.add("", "the inbound side of sidecars is not configured: connected sidecars do not enforce it: %s", andMore(first, n))
	}
}

// inboundPolicy returns a predicate for the sidecars whose inbound side an object should protect.
// It is nil if the object is not such a policy.
func (st *state) inboundPolicy(o objects.Object) func(*proxy) bool {
	within := func(namespace string, t *objects.PolicyTarget) func(*proxy) bool {
		if len(t.Targets) > 0 {
			return nil
		}
		return func(p *proxy) bool {
			return (namespace == p.Namespace || namespace == st.settings.RootNamespace()) && t.Selector.SubsetOf(p.Labels)
		}
	}
	switch o := o.(type) {
	case *objects.AuthorizationPolicy:
		return within(o.Namespace, &o.PolicyTarget)
	case *objects.RequestAuthentication:
		return within(o.Namespace, &o.PolicyTarget)
	case *objects.PeerAuthentication:
		if o.Spec.GetMtls().GetMode() == objects.Strict {
			selected := within(o.Namespace, &objects.PolicyTarget{Selector: o.Selector})
			return func(p *proxy) bool {
				return selected(p) && st.PeerMode(p.Namespace, p.Labels, 0).Mode == objects.Strict
			}
		}
	}
	return nil
}
