// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"slices"
	"strings"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/proto"

	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/route"
)

// made is the record of one resource: the objects and rules behind its routes or filter chains. A
// nil record takes no notes.
type made struct {
	// lists are the routes of VirtualServices by the first route of their list.
	lists map[*routev3.Route]madeRoutes
	// first are the first routes of the virtual hosts of other proxies than routers, by name.
	first map[string]*routev3.Route
	// hosts are the hosts of a router.
	hosts  *gatewayHosts
	chains []route.Origin
}

// madeRoutes are routes of a VirtualService, with the positions of their rules, or nil if these are
// unknown.
type madeRoutes struct {
	of        *virtualService
	routes    []*routev3.Route
	positions []int32
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
	of.made = &made{lists: make(map[*routev3.Route]madeRoutes), first: make(map[string]*routev3.Route)}
	m := build(&of)
	return route.Made{Message: m, Chains: of.made.chains, Routes: func(h *routev3.VirtualHost) []route.Origin {
		return of.made.routes(st.index, h)
	}}, of.made
}

func (m *made) note(v *virtualService, routes []*routev3.Route, positions []int32) {
	if m != nil && len(routes) > 0 {
		m.lists[routes[0]] = madeRoutes{v, routes, positions}
	}
}

func (m *made) noteHost(h *routev3.VirtualHost) {
	if m != nil && len(h.GetRoutes()) > 0 {
		m.first[h.GetName()] = h.GetRoutes()[0]
	}
}

func (m *made) noteHosts(hosts *gatewayHosts) {
	if m != nil {
		m.hosts = hosts
	}
}

func (m *made) noteChain(c gatewayChain) {
	if m == nil {
		return
	}
	if c.of != nil {
		m.chains = append(m.chains, originOf(c.of, element(c.field, c.rule)))
		return
	}
	g := c.server.gateway
	m.chains = append(m.chains, route.Origin{Kind: istio.Gateway.Kind, Namespace: g.namespace, Name: g.name, Field: c.server.field()})
}

func originOf(v *virtualService, field string) route.Origin {
	return route.Origin{Kind: istio.VirtualService.Kind, Namespace: v.namespace, Name: v.name, Field: field}
}

// routes returns the origins of the routes of a virtual host.
func (m *made) routes(x *index, h *routev3.VirtualHost) []route.Origin {
	if len(h.GetRoutes()) == 0 {
		return nil
	}
	lists := []madeRoutes{m.lists[h.GetRoutes()[0]]}
	if m.hosts != nil {
		lists = m.hosts.madeFor(h.GetDomains()[0])
	}
	out := make([]route.Origin, len(h.GetRoutes()))
	for i, r := range h.GetRoutes() {
		for _, list := range lists {
			if at := slices.Index(list.routes, r); at >= 0 && list.of != nil {
				out[i] = list.origin(x, at)
			}
		}
	}
	return out
}

// origin returns the origin of a route.
func (m madeRoutes) origin(x *index, at int) route.Origin {
	if at >= len(m.positions) {
		return originOf(m.of, "spec.http")
	}
	position := int(m.positions[at])
	out := originOf(m.of, element("spec.http", position))
	if rules := x.rulesOf(m.of); position < len(rules) {
		out.Rule = rules[position].GetName()
	}
	return out
}

// madeFor returns the routes of the VirtualServices for a host.
func (g *gatewayHosts) madeFor(name string) (out []madeRoutes) {
	host := g.byName[registry.Hostname(strings.Trim(name, "[]"))]
	if host == nil {
		return nil
	}
	for _, rules := range host.rules {
		out = append(out, madeRoutes{rules.of, rules.routes, rules.positions})
	}
	return out
}

// virtualServices returns the VirtualServices with routes in a virtual host, in their order.
func (m *made) virtualServices(host string) (out []*virtualService) {
	lists := []madeRoutes{m.lists[m.first[host]]}
	if m.hosts != nil {
		lists = m.hosts.madeFor(host[:max(0, strings.LastIndexByte(host, ':'))])
	}
	for _, list := range lists {
		if list.of != nil && !slices.Contains(out, list.of) {
			out = append(out, list.of)
		}
	}
	return out
}
