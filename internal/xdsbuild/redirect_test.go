// SPDX-License-Identifier: Apache-2.0

package xdsbuild_test

import (
	"testing"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/internal/test/routesim"
	"github.com/pilotkit/pilotkit/internal/xdsbuild"
)

// TestRedirectPorts: a redirect to the port that the scheme implies does not lead to the
// port that the client wrote, and the port is not written out without need.
func TestRedirectPorts(t *testing.T) {
	for _, c := range []struct{ redirect, host, want string }{
		{`{"scheme":"https","port":443}`, "x", "https://x/"},
		{`{"scheme":"https","port":443}`, "x:8080", "https://x:443/"},
		{`{"scheme":"https","port":443,"authority":"y"}`, "x:8080", "https://y/"},
		{`{"scheme":"https","derivePort":"FROM_PROTOCOL_DEFAULT"}`, "x:8080", "https://x:443/"},
		{`{"scheme":"https"}`, "x:8080", "https://x:8080/"},
		{`{"port":80}`, "x:8080", "http://x:80/"},
		{`{"port":80}`, "x", "http://x/"},
		{`{"scheme":"https","port":8443}`, "x:8080", "https://x:8443/"},
		{`{"derivePort":"FROM_REQUEST_PORT"}`, "x:8080", "http://x:8080/"},
	} {
		scope := xdsbuild.RouteScope{Port: 80}
		rule := parse(t, `{"redirect":`+c.redirect+`}`, &networking.HTTPRoute{})
		got := routesim.Envoy(hostOf(scope.Routes([]*networking.HTTPRoute{rule})), routesim.Request{Authority: c.host, Scheme: "http", Path: "/"})
		check(t, c.redirect+" of "+c.host, got.Location, c.want)
	}
}

// TestRedirectPortsJoin: a redirect of every request goes behind the routes of other
// objects, also for requests whose host has a port.
func TestRedirectPortsJoin(t *testing.T) {
	scope := xdsbuild.RouteScope{Port: 80}
	routes := func(rule string) []*routev3.Route {
		return scope.Routes([]*networking.HTTPRoute{parse(t, rule, &networking.HTTPRoute{})})
	}
	joined := hostOf(xdsbuild.JoinRoutes(
		routes(`{"redirect":{"scheme":"https","port":443}}`),
		routes(`{"match":[{"uri":{"prefix":"/tea"}}],"directResponse":{"status":418}}`),
	))
	for host, want := range map[string]string{"x": "https://x/", "x:8080": "https://x:443/"} {
		r := routesim.Request{Authority: host, Scheme: "http", Path: "/tea"}
		check(t, "tea of "+host, routesim.Envoy(joined, r).Status, uint32(418))
		r.Path = "/"
		check(t, "all of "+host, routesim.Envoy(joined, r).Location, want)
	}
}

func hostOf(routes []*routev3.Route) *routev3.RouteConfiguration {
	return &routev3.RouteConfiguration{VirtualHosts: []*routev3.VirtualHost{{Domains: []string{"*"}, Routes: routes}}, IgnorePortInHostMatching: true}
}
