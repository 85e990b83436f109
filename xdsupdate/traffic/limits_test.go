// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"fmt"
	"strings"
	"testing"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
)

// matchesOf returns matches by a header, which fit any match by path.
func matchesOf(n int, by string) []*networking.HTTPMatchRequest {
	out := make([]*networking.HTTPMatchRequest, n)
	for i := range out {
		value := &networking.StringMatch{MatchType: &networking.StringMatch_Exact{Exact: fmt.Sprintf("/%d", i)}}
		if out[i] = (&networking.HTTPMatchRequest{Uri: value}); by != "" {
			out[i] = &networking.HTTPMatchRequest{Headers: map[string]*networking.StringMatch{by: value}}
		}
	}
	return out
}

// bigRoot has one rule of its own and one that delegates, each with n matches.
func bigRoot(configs *configList, n int) {
	root := toCart("/own", []string{"mesh", "ingress/a"}, "cart.shop.svc.cluster.local")
	root.Http = append(root.Http, &networking.HTTPRoute{Match: matchesOf(n, ""), Delegate: &networking.Delegate{Name: "d"}})
	delegate := toCart("/", nil)
	delegate.Hosts, delegate.Http[0].Match = nil, matchesOf(n, "x")
	configs.add(istio.VirtualService, "shop/root", root)
	configs.add(istio.VirtualService, "shop/d", delegate)
}

func limitedStage(tb testing.TB, limits traffic.Limits, add func(*configList)) *scene {
	tb.Helper()
	var configs configList
	configs.add(istio.Gateway, "ingress/a", gatewayOf(serverOf(80, "HTTP", "", "*")))
	configs.add(istio.VirtualService, "shop/other", toCart("/other", []string{"mesh", "ingress/a"}, "catalog.shop.svc.cluster.local"))
	add(&configs)
	return stage(tb, traffic.Options{Limits: limits}, configs, cartPopulation())
}

// limitedRoutes are the route configurations with cart and catalog of a router, a
// sidecar and a gRPC client.
func limitedRoutes(s *scene) map[string]proto.Message {
	s.t.Helper()
	out := make(map[string]proto.Message)
	for name, n := range map[string]*core.Node{"http.80": edge(), "80": in("sidecar", "shop"), "8080": in("sidecar", "shop"), cartOutbound: in("grpc", "shop")} {
		out[name] = s.send(n, envoy.RouteType, name)
	}
	return out
}

// routesAndFailure returns route configurations, and what is left out of them.
func (s *scene) routesAndFailure(n *core.Node, name string) (*routev3.RouteConfiguration, string) {
	s.t.Helper()
	got := s.ask(n, envoy.RouteType, name)
	rc, _ := got.resources[name].(*routev3.RouteConfiguration)
	return rc, got.failed[name]
}

// TestTooManyMatches: a rule whose matches and those of its delegate are too many is
// answered with 500 and reported; the object's other rules and all other objects are
// served as without it.
func TestTooManyMatches(t *testing.T) {
	const n = 300
	s := limitedStage(t, traffic.Limits{}, func(l *configList) { bigRoot(l, n) })
	for name, rc := range limitedRoutes(s) {
		if size := proto.Size(rc); size > 200_000 {
			t.Errorf("%s has %d bytes", name, size)
		}
	}
	rc, failed := s.routesAndFailure(edge(), "http.80")
	if !strings.Contains(failed, "shop/root: spec.http[1]") || !strings.Contains(failed, "more than 10000 matches") {
		t.Errorf("the error is %q", failed)
	}
	text := fmt.Sprint(rc)
	if !strings.Contains(text, "/own") || !strings.Contains(text, "/other") || strings.Count(text, "status:500") != n {
		t.Errorf("own, other or failing routes are missing: %d", strings.Count(text, "status:500"))
	}
	if s.reason("root", "spec.http[1]") == "" {
		t.Errorf("it is not among %v", s.ineffective())
	}
	call := traffic.Call{Host: "cart.shop.svc.cluster.local", Port: 8080, Path: "/7", Headers: map[string]string{"x": "/7"}}
	if got := s.explain(in("sidecar", "shop"), call).Outcome; got != "answered with 500" {
		t.Errorf("the outcome of a call is %q", got)
	}
	// At the limit, and without one, everything is served.
	for _, limits := range []traffic.Limits{{Matches: 1 + 20*20}, {Matches: -1}} {
		rc, failed := limitedStage(t, limits, func(l *configList) { bigRoot(l, 20) }).routesAndFailure(edge(), "http.80")
		if routes := strings.Count(fmt.Sprint(rc), cartOutbound); failed != "" || routes != 1+20*20+1 {
			t.Errorf("%+v: %d routes, %v", limits, routes, failed)
		}
	}
	if _, failed := limitedStage(t, traffic.Limits{Matches: 20 * 20}, func(l *configList) { bigRoot(l, 20) }).routesAndFailure(edge(), "http.80"); failed == "" {
		t.Error("no error one match over the limit")
	}
}

// TestTooManyBytes: a VirtualService whose matches are multiplied with its destinations
// fails as a whole when its routes are too long, and a gRPC client's resource stays
// below the 4 MiB that it takes.
func TestTooManyBytes(t *testing.T) {
	s := limitedStage(t, traffic.Limits{}, func(l *configList) {
		v := toCart("/", []string{"mesh", "ingress/a"}, "cart.shop.svc.cluster.local")
		v.Http[0].Match = matchesOf(300, "")
		for i := range 300 {
			v.Http[0].Route = append(v.Http[0].Route, &networking.HTTPRouteDestination{
				Destination: &networking.Destination{Host: "cart", Subset: fmt.Sprint("v", i)}, Weight: 1,
			})
		}
		l.add(istio.VirtualService, "shop/wide", v)
	})
	for name, rc := range limitedRoutes(s) {
		if size := proto.Size(rc); size > 4<<20 || size == 0 {
			t.Errorf("%s has %d bytes", name, size)
		}
	}
	rc, failed := s.routesAndFailure(edge(), "http.80")
	if !strings.Contains(failed, "shop/wide: spec.http[0]") || strings.Count(failed, "shop/wide") > 2 {
		t.Errorf("the error is %q", failed)
	}
	if text := fmt.Sprint(rc); strings.Count(text, "status:500") != 1 || !strings.Contains(text, "/other") {
		t.Errorf("routes: %s", text)
	}
	if s.reason("wide", "spec.http[0]") == "" {
		t.Error("it is not reported")
	}
}

// TestTooManyRepetitions: a sidecar repeats the routes of a VirtualService for each of
// its hosts; if that is too long they fail for all of them, and those of others do not.
func TestTooManyRepetitions(t *testing.T) {
	add := func(l *configList) {
		hosts := make([]string, 50)
		for i := range hosts {
			hosts[i] = fmt.Sprintf("h%d.example.com", i)
		}
		v := toCart("/", nil, hosts...)
		v.Http[0].Match = matchesOf(100, "")
		l.add(istio.VirtualService, "shop/often", v)
	}
	n := in("sidecar", "shop")
	all, failed := limitedStage(t, traffic.Limits{}, add).routesAndFailure(n, "80")
	if failed != "" {
		t.Fatal(failed)
	}
	few, failed := limitedStage(t, traffic.Limits{RepeatedBytes: 100_000}, add).routesAndFailure(n, "80")
	if !strings.Contains(failed, "shop/often: spec.http") {
		t.Errorf("the error is %q", failed)
	}
	if text := fmt.Sprint(few); strings.Count(text, "status:500") != 1 || strings.Count(text, `.example.com"`) != 50 || !strings.Contains(text, "/other") || proto.Size(all) < 10*proto.Size(few) {
		t.Errorf("%d of 50 hosts fail, %d of %d bytes", strings.Count(text, `.example.com"`), proto.Size(few), proto.Size(all))
	}
}
