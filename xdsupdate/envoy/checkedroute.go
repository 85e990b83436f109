// SPDX-License-Identifier: Apache-2.0

package envoy

import (
	"net/http"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	networking "istio.io/api/networking/v1alpha3"
)

// routesOfMatch are the routes of a rule under one of its matches.
type routesOfMatch struct {
	routes []*routev3.Route
	// some: there is something to do, even if no call of a gRPC client can match.
	some bool
	// last: every request matches.
	last bool
}

// routesOf returns the routes of a rule under one of its matches; nil is the match of
// a rule that has none. What clients would refuse, and what cannot be built, fails the
// requests that match.
func (s *RouteScope) routesOf(rule *networking.HTTPRoute, m *networking.HTTPMatchRequest) routesOfMatch {
	// Those of gRPC clients are made of what Envoys are sent.
	route, err := Try(ForEnvoy, func() *routev3.Route { return s.route(rule, m) })
	if err != nil {
		if s.LeftOut != nil {
			s.LeftOut(rule, err)
		}
		if route, err = Try(ForEnvoy, func() *routev3.Route { return failing(s.routeMatch(m)) }); err != nil {
			return routesOfMatch{some: true}
		}
	}
	switch {
	case route == nil:
		return routesOfMatch{}
	case s.Client == ForGRPC:
		return routesOfMatch{forGRPC(route, s.ServiceCluster), true, matchesAll(route.GetMatch())}
	default:
		return routesOfMatch{s.withPortWritten(rule, route), true, matchesAll(route.GetMatch())}
	}
}

// failing answers the requests that match with 500; nil without a match.
func failing(match *routev3.RouteMatch) *routev3.Route {
	if match == nil {
		return nil
	}
	return &routev3.Route{Match: match, Action: respond(http.StatusInternalServerError)}
}

// respond is the action of a route that answers with a status.
func respond(status uint32) *routev3.Route_DirectResponse {
	return &routev3.Route_DirectResponse{DirectResponse: &routev3.DirectResponseAction{Status: status}}
}

// MisdirectedRoutes answer everything with 421: the request belongs on a connection of its
// own. They are for Envoys only.
func MisdirectedRoutes() []*routev3.Route {
	return []*routev3.Route{{Match: everyPath(), Action: respond(http.StatusMisdirectedRequest)}}
}

// CheckRules returns the routes of rules, wherever their matches let them count. It calls
// LeftOut for every rule that has a route which Routes would leave out or replace.
func (s *RouteScope) CheckRules(rules []*networking.HTTPRoute) []*routev3.Route {
	var out []*routev3.Route
	for _, rule := range rules {
		for _, m := range rule.GetMatch() {
			out = append(out, s.routesOf(rule, m).routes...)
		}
		if len(rule.GetMatch()) == 0 {
			out = append(out, s.routesOf(rule, nil).routes...)
		}
	}
	return out
}

// FailingRoutes answer everything with 500, in the place of routes that cannot be
// built.
func (s *RouteScope) FailingRoutes() []*routev3.Route {
	if s.Client == ForGRPC {
		return []*routev3.Route{grpcFailure(everyPath(), http.StatusInternalServerError, s.ServiceCluster)}
	}
	return []*routev3.Route{failing(everyPath())}
}
