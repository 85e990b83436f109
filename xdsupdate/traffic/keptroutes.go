// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"slices"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"

	"github.com/pilotkit/pilotkit/internal/limit"
	"github.com/pilotkit/pilotkit/internal/pmap"
	"github.com/pilotkit/pilotkit/internal/xdsbuild"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/mesh"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/objects"
)

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
