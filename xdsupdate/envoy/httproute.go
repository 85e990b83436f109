// SPDX-License-Identifier: Apache-2.0

package envoy

import (
	"fmt"
	"net/http"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	networking "istio.io/api/networking/v1alpha3"
)

// The filters that a route can configure.
const (
	faultFilter  = "envoy.filters.http.fault"
	corsFilter   = "envoy.filters.http.cors"
	routerFilter = "envoy.filters.http.router"
)

// Routes returns the routes of rules, which take effect in their order: one for
// each match that can hold in this scope, and one for a rule without matches.
// Those behind a route that every request matches are left out. Rules with a
// delegate give no routes; expand them before. What a rule says and clients
// could not accept is left out alone where that narrows nothing; a route that does not
// pass Check is replaced by one that answers with 500, or left out if what it matches
// does not pass either, and LeftOut is called.
//
// The result is empty only if no rule is for this scope. If there are rules, but
// none that the call of a gRPC client could be for, there is a route that fails all
// calls: C-core refuses a virtual host without routes.
func (s *RouteScope) Routes(rules []*networking.HTTPRoute) []*routev3.Route {
	var out []*routev3.Route
	some, size := false, 0
	for _, rule := range rules {
		matches := rule.GetMatch()
		if len(matches) == 0 {
			matches = []*networking.HTTPMatchRequest{nil}
		}
		for _, m := range matches {
			if !s.covers(m) {
				continue
			}
			found := s.routesOf(rule, m)
			some = some || found.some
			out = append(out, found.routes...)
			if size += sizeOf(found.routes); s.MaxBytes > 0 && size > s.MaxBytes {
				if s.LeftOut != nil {
					s.LeftOut(rule, fmt.Errorf("with this rule all routes together have more than %d bytes, and none is served", s.MaxBytes))
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

func sizeOf(routes []*routev3.Route) int {
	n := 0
	for _, r := range routes {
		n += proto.Size(r) + ProgramSize(r)
	}
	return n
}

// orFailure returns routes, or one that fails all requests if there are none.
func (s *RouteScope) orFailure(routes []*routev3.Route) []*routev3.Route {
	switch {
	case len(routes) > 0:
		return routes
	case s.Client == ForGRPC:
		return []*routev3.Route{grpcFailure(everyPath(), http.StatusNotFound, s.ServiceCluster)}
	default:
		return []*routev3.Route{failing(everyPath())}
	}
}

// route is the route of a rule under one of its matches; nil is the match of a
// rule that has none. The result is nil if no request can match, or there is
// nothing to do with it.
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

// configureFilter gives a route its own configuration of a filter; nil is none.
func configureFilter(out *routev3.Route, name string, config *anypb.Any) {
	if config == nil {
		return
	}
	if out.TypedPerFilterConfig == nil {
		out.TypedPerFilterConfig = make(map[string]*anypb.Any)
	}
	out.TypedPerFilterConfig[name] = config
}
