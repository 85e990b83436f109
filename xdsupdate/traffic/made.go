// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"slices"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/proto"

	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/objects"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/route"
)

// made is the record of one resource: the objects and rules behind its routes or filter chains. A
// nil record takes no notes.
type made struct {
	// hosts are the rules behind virtual hosts, by name.
	hosts  map[string][]*builtRules
	chains []route.Origin
}

// recorded returns a resource with its record.
func (st *state) recorded(p *proxy, typeURL, name string) (route.Made, *made) {
	return st.recording(func(of *state) proto.Message {
		m, _ := of.resource(p, typeURL, name)
		return m
	})
}

// recording returns what build builds, with its record.
func (st *state) recording(build func(of *state) proto.Message) (route.Made, *made) {
	of := *st
	of.made = &made{hosts: make(map[string][]*builtRules)}
	m := build(&of)
	return route.Made{Message: m, Chains: of.made.chains, Routes: func(h *routev3.VirtualHost) []route.Origin {
		return of.made.routes(st.Index, h)
	}}, of.made
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
