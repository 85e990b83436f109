// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"slices"
	"strings"
	"sync"
	"weak"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/internal/limit"
	"github.com/pilotkit/pilotkit/internal/pmap"
	"github.com/pilotkit/pilotkit/internal/xdsbuild"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/mesh"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/objects"
)

// builtRules are the routes of a VirtualService in a place.
type builtRules struct {
	of      *objects.VirtualService
	routes  []*routev3.Route
	size    int // encoded size of the routes
	leftOut []error
	// positions are the positions that allRuleRoutes returns.
	positions []int32

	mu sync.Mutex
	// hosts are the virtual hosts of sidecars with the routes.
	hosts map[hostKey]*routev3.VirtualHost
}

// keptRoutes caches the routes of VirtualServices on routers across pushes, so that a change of one
// among 10,000 VirtualServices of a route configuration rebuilds only its own routes. It is
// immutable.
type keptRoutes struct {
	of pmap.Map[*objects.VirtualService, []keptRules]
}

// keptRules are the routes of a VirtualService in a place.
type keptRules struct {
	at    keptPlace
	rules *builtRules
}

// keptPlace identifies the variants of a VirtualService's routes.
type keptPlace struct {
	place
	// namespace and labels are the router's.
	namespace, labels string
}

// maxKeptPlaces limits the variants per VirtualService, because entries of deleted Gateways and
// disconnected routers stay.
const maxKeptPlaces limit.Size = 64

func (k keptRoutes) get(v *objects.VirtualService, at keptPlace) *builtRules {
	list, _ := k.of.Get(v)
	for _, kept := range list {
		if kept.at == at {
			return kept.rules
		}
	}
	return nil
}

func (k keptRoutes) with(at keptPlace, rules *builtRules) keptRoutes {
	list, _ := k.of.Get(rules.of)
	if len(list) >= maxKeptPlaces.Get() {
		list = nil
	}
	return keptRoutes{k.of.Set(rules.of, append(slices.Clip(list), keptRules{at, rules}))}
}

// after returns the entries that a difference does not concern. Routes depend on the rules of their
// VirtualService and its delegates, on the services of their destinations, and on DestinationRules
// for these.
func (k keptRoutes) after(d *difference, w *mesh.World, indexes ...*objects.Index) keptRoutes {
	if k.of.Len() == 0 {
		return k
	}
	drop := func(list ...*objects.VirtualService) {
		for _, v := range list {
			k.of = k.of.Delete(v)
		}
	}
	leadingTo := func(host registry.Hostname) {
		for _, name := range mesh.RelatedIn(host, d.before.world, w) {
			for _, x := range indexes {
				drop(x.Finder.LeadingTo(name)...)
			}
		}
	}
	for _, host := range d.services {
		leadingTo(host)
	}
	for _, o := range d.objects {
		for _, r := range objects.Of[*objects.DestinationRule](o.Revisions()) {
			if r.Host.IsWildcard() {
				return keptRoutes{}
			}
			leadingTo(r.Host)
		}
	}
	for _, v := range d.virtualServices() {
		drop(v)
		if v.Delegate() {
			for _, x := range indexes {
				drop(x.Finder.Roots(v.ObjectName)...)
			}
		}
	}
	return k
}

// gatewayRules returns the routes of a VirtualService in a place on a router.
func (st *state) gatewayRules(p *proxy, v *objects.VirtualService, at place) *builtRules {
	rules := st.allGatewayRules(p, v, at)
	if p.leaving == nil || len(rules.routes) == 0 {
		return rules
	}
	if rules.hashes() { // some of them may belong to a DestinationRule that is left out
		rules = st.builtRules(p, v, at)
	}
	routes := st.routesOrFailing(p, v, at, rules.routes)
	if len(routes) == len(rules.routes) && &routes[0] == &rules.routes[0] {
		return rules
	}
	return &builtRules{of: v, routes: routes, size: sizeOf(routes), leftOut: rules.leftOut}
}

// allGatewayRules returns the routes for clients that have rejected none.
func (st *state) allGatewayRules(p *proxy, v *objects.VirtualService, at place) *builtRules {
	key := keptPlace{at, p.Namespace, objects.JoinLabels(p.Labels)}
	st.mu.Lock()
	rules := st.kept.get(v, key)
	st.mu.Unlock()
	if rules != nil {
		return rules
	}
	if p.leaving != nil { // the routes are kept for other clients
		of := *p
		of.leaving, p = nil, &of
	}
	rules = st.builtRules(p, v, at)
	st.mu.Lock()
	defer st.mu.Unlock()
	st.kept = st.kept.with(key, rules)
	return rules
}

func (st *state) builtRules(p *proxy, v *objects.VirtualService, at place) *builtRules {
	rules := &builtRules{of: v}
	rules.routes, rules.positions, rules.leftOut = st.allRuleRoutes(p, v, at, (*xdsbuild.RouteScope).Routes)
	rules.size = sizeOf(rules.routes)
	return rules
}

// hashes reports whether some route has the key of a consistent hash.
func (r *builtRules) hashes() bool {
	return slices.ContainsFunc(r.routes, func(route *routev3.Route) bool { return len(route.GetRoute().GetHashPolicy()) > 0 })
}

// sharedRules are the routes of a state that sidecars with different views have in common, so that
// a change costs the building of a route once, and not once for each namespace. References are
// weak, because the routes are needed only until the route configurations are encoded.
type sharedRules struct {
	mu sync.Mutex
	of map[sharedKey]weak.Pointer[builtRules]
}

// sharedKey identifies the routes of a VirtualService, or of a service without one.
type sharedKey struct {
	of      *objects.VirtualService
	at      place
	service string
	// read is everything of the sidecar and its view that the routes depend on.
	read string
}

// get returns the routes of a key, built if no one has them.
func (s *sharedRules) get(key sharedKey, build func() *builtRules) *builtRules {
	s.mu.Lock()
	rules := s.of[key].Value()
	s.mu.Unlock()
	if rules != nil {
		return rules
	}
	rules = build()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.of[key] = weak.Make(rules)
	return rules
}

// sidecarRules returns the routes of a VirtualService in a place on a sidecar or gRPC client.
func (st *state) sidecarRules(p *proxy, v *objects.VirtualService, at place) *builtRules {
	if p.leaving != nil {
		rules := st.builtRules(p, v, at)
		rules.routes = st.routesOrFailing(p, v, at, rules.routes)
		rules.size = sizeOf(rules.routes)
		return rules
	}
	key := sharedKey{of: v, at: at, read: st.readBy(p, v, at)}
	return st.shared.get(key, func() *builtRules { return st.builtRules(p, v, at) })
}

// defaultRules returns the route of a sidecar or gRPC client for a service without a VirtualService.
func (st *state) defaultRules(p *proxy, svc *mesh.Service, at place) *builtRules {
	build := func() *builtRules { return &builtRules{routes: []*routev3.Route{st.defaultRoute(p, svc, at)}} }
	if p.leaving != nil {
		return build()
	}
	var read reading
	read.hash(st.hashOf(p, svc.Host, svc, at.port, ""))
	return st.shared.get(sharedKey{at: at, service: string(svc.Host), read: string(read)}, build)
}

// reading collects what routes depend on.
type reading []byte

func (r *reading) text(s string) { *r = protowire.AppendString(*r, s) }

func (r *reading) hash(h *networking.LoadBalancerSettings_ConsistentHashLB) {
	encoded, _ := proto.MarshalOptions{Deterministic: true}.Marshal(h) // a valid object has no error
	*r = protowire.AppendBytes(*r, encoded)
}

// readBy returns the dependencies of the routes of a VirtualService, including its delegates, at a
// sidecar: the results of the functions of its scope, and the source that its matches ask for.
func (st *state) readBy(p *proxy, v *objects.VirtualService, at place) string {
	scope := st.rulesScope(p, v, at)
	var out reading
	namespace, labels := false, false
	read := func(r *networking.HTTPRoute) {
		for d := range objects.DestinationsIn(r) {
			out.text(scope.Cluster(d))
			out.hash(scope.ConsistentHash(d))
		}
		for _, m := range r.GetMatch() {
			namespace = namespace || m.GetSourceNamespace() != ""
			labels = labels || len(m.GetSourceLabels()) > 0
		}
	}
	for _, r := range v.Rules() {
		read(r)
		if d := st.DelegateOf(v, r); d != nil {
			for _, r := range d.Rules() {
				read(r)
			}
		}
	}
	if namespace {
		out.text(p.Namespace)
	}
	if labels {
		out.text(objects.JoinLabels(p.Labels))
	}
	return string(out)
}

// hostKey identifies a virtual host with some routes.
type hostKey struct {
	name, domains string
	attempts      bool
}

// virtualHost returns a virtual host with the routes, or an error if clients would reject it.
func (r *builtRules) virtualHost(name string, domains []string, attempts bool) (*routev3.VirtualHost, error) {
	key := hostKey{name, strings.Join(domains, "\x00"), attempts}
	r.mu.Lock()
	defer r.mu.Unlock()
	if host := r.hosts[key]; host != nil {
		return host, nil
	}
	host := &routev3.VirtualHost{Name: name, Domains: domains, Routes: r.routes, IncludeRequestAttemptCount: attempts}
	if err := checkVirtualHost(host); err != nil {
		return nil, err
	}
	if r.hosts == nil {
		r.hosts = make(map[hostKey]*routev3.VirtualHost)
	}
	r.hosts[key] = host
	return host, nil
}
