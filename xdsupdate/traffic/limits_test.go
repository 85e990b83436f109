// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
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

func limitedState(limits Limits, add func(*configList)) *state {
	var configs configList
	configs.add(istio.Gateway, "ingress/a", gatewayOf(serverOf(80, "HTTP", "", "*")))
	configs.add(istio.VirtualService, "shop/other", toCart("/other", []string{"mesh", "ingress/a"}, "catalog.shop.svc.cluster.local"))
	add(&configs)
	return newState(newIndex(configs, newSettings(Options{Limits: limits})), cartWorld())
}

// limitedRoutes are the route configurations with cart and catalog of a router, a
// sidecar and a gRPC client.
func limitedRoutes(st *state) map[string]proto.Message {
	out := make(map[string]proto.Message)
	for name, p := range map[string]*proxy{"http.80": edge(), "80": {namespace: "shop"}, "8080": {namespace: "shop"}, cartCluster: {namespace: "shop", role: grpcClient}} {
		out[name], _ = st.resource(p, envoy.RouteType, name)
	}
	return out
}

// TestTooManyMatches: a rule whose matches and those of its delegate are too many is
// answered with 500 and reported; the object's other rules and all other objects are
// served as without it.
func TestTooManyMatches(t *testing.T) {
	const n = 300
	st := limitedState(Limits{}, func(l *configList) { bigRoot(l, n) })
	for name, rc := range limitedRoutes(st) {
		if size := proto.Size(rc); size > 200_000 {
			t.Errorf("%s has %d bytes", name, size)
		}
	}
	rc, err := st.resource(edge(), envoy.RouteType, "http.80")
	if err == nil || !strings.Contains(err.Error(), "shop/root: spec.http[1]") || !strings.Contains(err.Error(), "more than 10000 matches") {
		t.Errorf("the error is %v", err)
	}
	text := fmt.Sprint(rc)
	if !strings.Contains(text, "/own") || !strings.Contains(text, "/other") || strings.Count(text, "status:500") != n {
		t.Errorf("own, other or failing routes are missing: %d", strings.Count(text, "status:500"))
	}
	reported := func(e Ineffective) bool { return e.Name == "root" && e.Field == "spec.http[1]" }
	if found := st.ineffective(); !slices.ContainsFunc(found, reported) {
		t.Errorf("it is not among %v", found)
	}
	call := Call{Host: "cart.shop.svc.cluster.local", Port: 8080, Path: "/7", Headers: map[string]string{"x": "/7"}}
	if got := st.explain(&proxy{namespace: "shop"}, call).Outcome; got != "answered with 500" {
		t.Errorf("the outcome of a call is %q", got)
	}
	// At the limit, and without one, everything is served.
	for _, limits := range []Limits{{Matches: 1 + 20*20}, {Matches: -1}} {
		rc, err := limitedState(limits, func(l *configList) { bigRoot(l, 20) }).resource(edge(), envoy.RouteType, "http.80")
		if routes := strings.Count(fmt.Sprint(rc), cartCluster); err != nil || routes != 1+20*20+1 {
			t.Errorf("%+v: %d routes, %v", limits, routes, err)
		}
	}
	if _, err := limitedState(Limits{Matches: 20 * 20}, func(l *configList) { bigRoot(l, 20) }).resource(edge(), envoy.RouteType, "http.80"); err == nil {
		t.Error("no error one match over the limit")
	}
}

// TestTooManyBytes: a VirtualService whose matches are multiplied with its destinations
// fails as a whole when its routes are too long, and a gRPC client's resource stays
// below the 4 MiB that it takes.
func TestTooManyBytes(t *testing.T) {
	st := limitedState(Limits{}, func(l *configList) {
		v := toCart("/", []string{"mesh", "ingress/a"}, "cart.shop.svc.cluster.local")
		v.Http[0].Match = matchesOf(300, "")
		for i := range 300 {
			v.Http[0].Route = append(v.Http[0].Route, &networking.HTTPRouteDestination{
				Destination: &networking.Destination{Host: "cart", Subset: fmt.Sprint("v", i)}, Weight: 1,
			})
		}
		l.add(istio.VirtualService, "shop/wide", v)
	})
	for name, rc := range limitedRoutes(st) {
		if size := proto.Size(rc); size > 4<<20 || size == 0 {
			t.Errorf("%s has %d bytes", name, size)
		}
	}
	rc, err := st.resource(edge(), envoy.RouteType, "http.80")
	if err == nil || !strings.Contains(err.Error(), "shop/wide: spec.http[0]") || strings.Count(err.Error(), "shop/wide") > 2 {
		t.Errorf("the error is %v", err)
	}
	if text := fmt.Sprint(rc); strings.Count(text, "status:500") != 1 || !strings.Contains(text, "/other") {
		t.Errorf("routes: %s", text)
	}
	if !slices.ContainsFunc(st.ineffective(), func(e Ineffective) bool { return e.Name == "wide" && e.Field == "spec.http[0]" }) {
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
	p := &proxy{namespace: "shop"}
	all, err := limitedState(Limits{}, add).resource(p, envoy.RouteType, "80")
	if err != nil {
		t.Fatal(err)
	}
	few, err := limitedState(Limits{RepeatedBytes: 100_000}, add).resource(p, envoy.RouteType, "80")
	if err == nil || !strings.Contains(err.Error(), "shop/often: spec.http") {
		t.Errorf("the error is %v", err)
	}
	if text := fmt.Sprint(few); strings.Count(text, "status:500") != 1 || strings.Count(text, `.example.com"`) != 50 || !strings.Contains(text, "/other") || proto.Size(all) < 10*proto.Size(few) {
		t.Errorf("%d of 50 hosts fail, %d of %d bytes", strings.Count(text, `.example.com"`), proto.Size(few), proto.Size(all))
	}
}
