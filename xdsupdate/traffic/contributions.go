// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/proto"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/mesh"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/objects"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/route"
)

// leaving selects the objects that are left out of a resource for a client that rejects it, and
// collects the objects that contribute to the resource. It belongs to one call.
type leaving struct {
	out   func(ads.Contribution) ads.Omission
	all   []ads.Contribution
	known map[ads.Contribution]ads.Omission
}

// without builds a resource without some contributions, see ads.Answer.
func (st *state) without(p *proxy, typeURL, name string, out func(ads.Contribution) ads.Omission) (proto.Message, []ads.Contribution, error) {
	l := &leaving{out: out, known: make(map[ads.Contribution]ads.Omission)}
	of := *p
	of.leaving = l
	m, leftOut := st.resource(&of, typeURL, name)
	return m, l.all, errors.Join(leftOut...)
}

// leaves records that an object contributes to the resource of a proxy, and returns how much of the
// object is left out.
func (p *proxy) leaves(c *configstore.Config, state any) ads.Omission {
	return p.leaving.of(ads.Contribution{Object: c.Key(), State: state})
}

// leavesService is leaves for a service, which contributes its host names.
func (p *proxy) leavesService(svc *mesh.Service) ads.Omission {
	if p.leaving == nil {
		return ads.Included
	}
	state := serviceState{svc.Of[0], svc.Of[len(svc.Of)-1], len(svc.Of)}
	return p.leaving.of(ads.Contribution{Object: xdsupdate.ServiceKey(svc.Host, svc.Namespace), State: state})
}

// serviceState identifies a state of a service, which several registries may have.
type serviceState struct {
	first, last *registry.Service
	count       int
}

// leavesRules is leaves for the routes of a VirtualService.
func (st *state) leavesRules(p *proxy, v *objects.VirtualService) ads.Omission {
	if p.leaving == nil {
		return ads.Included
	}
	return p.leaves(v.Config, st.rulesState(v))
}

func (l *leaving) of(contribution ads.Contribution) ads.Omission {
	if l == nil {
		return ads.Included
	}
	left, known := l.known[contribution]
	if !known {
		left = l.out(contribution)
		l.known[contribution] = left
		l.all = append(l.all, contribution)
	}
	return left
}

// rulesState identifies a revision of the rules of a VirtualService, including its delegates.
type rulesState struct {
	of        *objects.VirtualService
	delegates string
}

func (st *state) rulesState(v *objects.VirtualService) rulesState {
	out := rulesState{of: v}
	var delegates strings.Builder
	for _, r := range v.Spec.GetHttp() {
		if r.GetDelegate() != nil {
			fmt.Fprintf(&delegates, "%p ", st.DelegateOf(v, r))
		}
	}
	out.delegates = delegates.String()
	return out
}

// routesOrFailing returns routes of a VirtualService or, if the VirtualService is left out, routes
// that answer the same requests with 500. Routes with other matches than plain paths, such as
// regular expressions, may be the reason for the rejection. They are replaced by a route that
// answers all remaining requests with 500, as are all routes if more is left out.
func (st *state) routesOrFailing(p *proxy, v *objects.VirtualService, at place, routes []*routev3.Route) []*routev3.Route {
	if p.leaving == nil || len(routes) == 0 {
		return routes
	}
	how := st.leavesRules(p, v)
	if how == ads.Included {
		return routes
	}
	all := st.routeScope(p, v.Namespace, at).FailingRoutes()
	if how > ads.Failing || p.Role == objects.GRPCClient {
		return all
	}
	var out []*routev3.Route
	for _, r := range routes {
		if isPlainMatch(r.GetMatch()) {
			out = append(out, &routev3.Route{Match: r.GetMatch(), Action: all[0].GetAction()})
		}
	}
	if len(out) < len(routes) {
		out = append(out, all...)
	}
	return out
}

// isPlainMatch reports whether a match consists only of a path or a path prefix.
func isPlainMatch(m *routev3.RouteMatch) bool {
	switch m.GetPathSpecifier().(type) {
	case *routev3.RouteMatch_Prefix, *routev3.RouteMatch_Path, *routev3.RouteMatch_PathSeparatedPrefix:
	default:
		return false
	}
	return len(m.GetHeaders())+len(m.GetQueryParameters())+len(m.GetDynamicMetadata()) == 0
}

// made is the record of one resource: the objects and rules behind its routes or filter chains. A
// nil record takes no notes.
type made struct {
	// hosts are the rules behind virtual hosts, by name.
	hosts  map[string][]*builtRules
	chains []route.Origin
}

// recorded is resource, with the record.
func (st *state) recorded(p *proxy, typeURL, name string) (route.Made, *made, []error) {
	of := *st
	of.made = &made{hosts: make(map[string][]*builtRules)}
	m, leftOut := of.resource(p, typeURL, name)
	return route.Made{Message: m, Chains: of.made.chains, Routes: func(h *routev3.VirtualHost) []route.Origin {
		return of.made.routes(st.Index, h)
	}}, of.made, leftOut
}

func (m *made) noteHost(name string, rules ...*builtRules) {
	if m != nil {
		m.hosts[name] = rules
	}
}

func (m *made) noteChain(c gatewayChain) {
	if m == nil {
		return
	}
	if c.of != nil {
		m.chains = append(m.chains, originOf(c.of, objects.Element(c.field, c.rule)))
		return
	}
	g := c.server.gateway
	m.chains = append(m.chains, route.Origin{Kind: istio.Gateway.Kind, Namespace: g.Namespace, Name: g.Name, Field: c.server.field()})
}

func originOf(v *objects.VirtualService, field string) route.Origin {
	return route.Origin{Kind: istio.VirtualService.Kind, Namespace: v.Namespace, Name: v.Name, Field: field}
}

// routes returns the origins of the routes of a virtual host.
func (m *made) routes(x *objects.Index, h *routev3.VirtualHost) []route.Origin {
	out := make([]route.Origin, len(h.GetRoutes()))
	for i, r := range h.GetRoutes() {
		for _, rules := range m.hosts[h.GetName()] {
			if at := slices.Index(rules.routes, r); at >= 0 && rules.of != nil {
				out[i] = rules.origin(x, at)
			}
		}
	}
	return out
}

// origin returns the origin of a route.
func (r *builtRules) origin(x *objects.Index, at int) route.Origin {
	if at >= len(r.positions) {
		return originOf(r.of, "spec.http")
	}
	position := int(r.positions[at])
	out := originOf(r.of, objects.Element("spec.http", position))
	if rules := x.RulesOf(r.of); position < len(rules) {
		out.Rule = rules[position].GetName()
	}
	return out
}

// virtualServices returns the VirtualServices with routes in a virtual host, in their order.
func (m *made) virtualServices(host string) (out []*objects.VirtualService) {
	for _, rules := range m.hosts[host] {
		if rules.of != nil && !slices.Contains(out, rules.of) {
			out = append(out, rules.of)
		}
	}
	return out
}
