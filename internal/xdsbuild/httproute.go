// SPDX-License-Identifier: Apache-2.0

package xdsbuild

import (
	"fmt"
	"net/http"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// The filters that a route can configure.
const (
	faultFilter  = "envoy.filters.http.fault"
	corsFilter   = "envoy.filters.http.cors"
	routerFilter = "envoy.filters.http.router"
)

// Routes returns the routes of rules, in the order of the rules: one for each match that can hold
// in this scope, and one for a rule without matches. It omits routes after a catch-all route. Rules
// with a delegate produce no routes and must be expanded before. A part of a rule that clients
// would reject is omitted alone, if that does not narrow the match. A route that fails Check is
// replaced by one that responds with 500, or omitted if its match fails Check, too; in both cases
// LeftOut is called.
//
// The result is empty only if no rule is for this scope. If there are rules, but no call of a gRPC
// client can match them, the result is a route that fails all calls, because C-core rejects a
// virtual host without routes.
func (s *RouteScope) Routes(rules []*networking.HTTPRoute) []*routev3.Route {
	var out []*routev3.Route
	some, size := false, 0
	for i, rule := range rules {
		for _, m := range matchesOf(rule) {
			if !s.covers(m) {
				continue
			}
			found := s.routesOf(i, rule, m)
			some = some || found.some
			out = append(out, found.routes...)
			if s.Made != nil {
				s.Made(i, len(out))
			}
			if size += sizeOf(found.routes); s.MaxBytes > 0 && size > s.MaxBytes {
				if s.LeftOut != nil {
					s.LeftOut(i, fmt.Errorf("with this rule all routes together have more than %d bytes, and none is served", s.MaxBytes))
				}
				return s.FailingRoutes()
			}
			if found.last {
				return s.orFailure(out)
			}
		}
	}
	if some {
		return s.orFailure(out)
	}
	return nil
}

// matchesOf returns the matches of a rule. Nil stands for a rule without matches.
func matchesOf(rule *networking.HTTPRoute) []*networking.HTTPMatchRequest {
	if len(rule.GetMatch()) == 0 {
		return []*networking.HTTPMatchRequest{nil}
	}
	return rule.GetMatch()
}

func sizeOf(routes []*routev3.Route) int {
	n := 0
	for _, r := range routes {
		n += proto.Size(r) + ProgramSize(r)
	}
	return n
}

// orFailure returns routes, or a route that fails all requests if there are none.
func (s *RouteScope) orFailure(routes []*routev3.Route) []*routev3.Route {
	switch {
	case len(routes) > 0:
		return routes
	case s.Client == envoy.ForGRPC:
		return []*routev3.Route{grpcFailure(everyPath(), http.StatusNotFound, s.ServiceCluster)}
	default:
		return []*routev3.Route{failing(everyPath())}
	}
}

// route returns the route of a rule under one of its matches, nil for a rule without matches. The
// result is nil if no request can match, or if the rule has no action.
func (s *RouteScope) route(rule *networking.HTTPRoute, m *networking.HTTPMatchRequest) *routev3.Route {
	match := s.routeMatch(m)
	if match == nil {
		return nil
	}
	out := &routev3.Route{Name: routeName(rule, m), Match: match, StatPrefix: m.GetStatPrefix()}
	authority := applyHeaders(out, rule.GetHeaders())
	switch {
	case rule.GetRedirect() != nil:
		if redirect := s.redirect(match, rule.GetRedirect()); redirect != nil {
			out.Action = redirect
		}
	case rule.GetDirectResponse() != nil:
		out.Action = directResponse(rule.GetDirectResponse())
	case len(rule.GetRoute()) > 0:
		s.forward(out, rule, authority)
	}
	if out.Action == nil {
		return nil
	}
	configureFilter(out, faultFilter, httpFault(rule.GetFault()))
	configureFilter(out, corsFilter, corsPolicy(rule.GetCorsPolicy()))
	return out
}

func routeName(rule *networking.HTTPRoute, m *networking.HTTPMatchRequest) string {
	if name := m.GetName(); name != "" {
		return rule.GetName() + "." + name
	}
	return rule.GetName()
}

// configureFilter sets a route's own configuration of a filter; nil sets none.
func configureFilter(out *routev3.Route, name string, config *anypb.Any) {
	if config == nil {
		return
	}
	if out.TypedPerFilterConfig == nil {
		out.TypedPerFilterConfig = make(map[string]*anypb.Any)
	}
	out.TypedPerFilterConfig[name] = config
}
