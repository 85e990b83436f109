// SPDX-License-Identifier: Apache-2.0

package xdsbuild

import (
	"net/http"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// routesOfMatch has the routes of a rule under one of its matches.
type routesOfMatch struct {
	routes []*routev3.Route
	// some is set if the match can hold in the scope, even if it cannot match any call of a gRPC
	// client.
	some bool
	// last is set if every request matches.
	last bool
}

// routesOf returns the routes of a rule, by its position, under one of its matches, nil for a rule without matches.
// If clients would reject the route, or if it cannot be built, matching requests fail.
func (s *RouteScope) routesOf(position int, rule *networking.HTTPRoute, m *networking.HTTPMatchRequest) routesOfMatch {
	// The routes of gRPC clients are derived from the routes of Envoys.
	route, err := Try(envoy.ForEnvoy, func() *routev3.Route { return s.route(rule, m) })
	if err != nil {
		if s.LeftOut != nil {
			s.LeftOut(position, err)
		}
		if route, err = Try(envoy.ForEnvoy, func() *routev3.Route { return failing(s.routeMatch(m)) }); err != nil {
			return routesOfMatch{some: true}
		}
	}
	switch {
	case route == nil:
		return routesOfMatch{}
	case s.Client == envoy.ForGRPC:
		return routesOfMatch{forGRPC(route, s.ServiceCluster), true, matchesAll(route.GetMatch())}
	default:
		return routesOfMatch{s.withPortWritten(rule, route), true, matchesAll(route.GetMatch())}
	}
}

// failing returns a route that responds with 500 to matching requests, nil for a nil match.
func failing(match *routev3.RouteMatch) *routev3.Route {
	if match == nil {
		return nil
	}
	return &routev3.Route{Match: match, Action: respond(http.StatusInternalServerError)}
}

// respond returns the action of a route that responds with a status.
func respond(status uint32) *routev3.Route_DirectResponse {
	return &routev3.Route_DirectResponse{DirectResponse: &routev3.DirectResponseAction{Status: status}}
}

// MisdirectedRoutes returns routes that respond to every request with 421, because the request
// belongs on another connection. They are for Envoys only.
func MisdirectedRoutes() []*routev3.Route {
	return []*routev3.Route{{Match: everyPath(), Action: respond(http.StatusMisdirectedRequest)}}
}

// CheckRules returns the routes of all rules and matches, including matches that cannot hold in the
// scope and rules after a catch-all route. It calls LeftOut for every rule with a route that Routes
// would omit or replace.
func (s *RouteScope) CheckRules(rules []*networking.HTTPRoute) []*routev3.Route {
	var out []*routev3.Route
	for i, rule := range rules {
		for _, m := range matchesOf(rule) {
			out = append(out, s.routesOf(i, rule, m).routes...)
		}
	}
	return out
}

// FailingRoutes returns routes that respond to every request with 500. They replace routes that
// cannot be built.
func (s *RouteScope) FailingRoutes() []*routev3.Route {
	if s.Client == envoy.ForGRPC {
		return []*routev3.Route{grpcFailure(everyPath(), http.StatusInternalServerError, s.ServiceCluster)}
	}
	return []*routev3.Route{failing(everyPath())}
}
