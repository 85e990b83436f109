// SPDX-License-Identifier: Apache-2.0

package xdsbuild_test

import (
	"fmt"
	"strings"
	"testing"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	httpfault "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/fault/v3"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/internal/xdsbuild"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// grpcText is a route for gRPC clients in short.
func grpcText(tb testing.TB, r *routev3.Route) string {
	tb.Helper()
	var b strings.Builder
	m := r.GetMatch()
	b.WriteString(m.GetPrefix() + m.GetPath() + m.GetSafeRegex().GetRegex())
	if len(m.GetQueryParameters())+len(m.GetDynamicMetadata()) > 0 {
		tb.Errorf("%v: matches what calls do not have", r)
	}
	for _, h := range m.GetHeaders() {
		if h.GetStringMatch() != nil || h.GetTreatMissingHeaderAsEmpty() {
			tb.Errorf("%v: C-core refuses string_match, grpc-go ignores treat_missing_header_as_empty", h)
		}
		b.WriteString(" ")
		if h.GetInvertMatch() {
			b.WriteString("!")
		}
		b.WriteString(h.GetName())
		switch s := h.GetHeaderMatchSpecifier().(type) {
		case *routev3.HeaderMatcher_ExactMatch:
			b.WriteString("=" + s.ExactMatch) //nolint:staticcheck // On purpose.
		case *routev3.HeaderMatcher_PrefixMatch:
			b.WriteString("^" + s.PrefixMatch) //nolint:staticcheck // On purpose.
		case *routev3.HeaderMatcher_SafeRegexMatch:
			b.WriteString("~" + s.SafeRegexMatch.GetRegex()) //nolint:staticcheck // On purpose.
		}
	}
	fmt.Fprintf(&b, " -> %s", r.GetRoute().GetCluster())
	for name, config := range r.GetTypedPerFilterConfig() {
		var f httpfault.HTTPFault
		if name != "envoy.filters.http.fault" || config.UnmarshalTo(&f) != nil {
			tb.Errorf("gRPC clients refuse a configuration of %s", name)
		}
		fmt.Fprintf(&b, " fails with %d", f.GetAbort().GetGrpcStatus())
	}
	return b.String()
}

func TestGRPCRoutesOfRules(t *testing.T) {
	scope := &xdsbuild.RouteScope{Client: envoy.ForGRPC, Port: 9000, ServiceCluster: "own"}
	for _, tc := range []struct {
		name, rule string
		want       []string
	}{
		{
			"headers", `{"match": [{"headers": {"X-A": {"exact": "1"}, "b": {"prefix": "2"}, "c": {"regex": "3.*"}, "d": {}}}]}`,
			[]string{"/ x-a=1 b^2 c~3.* d -> to"},
		},
		{
			"a missing header is an alternative", `{"match": [{"withoutHeaders": {"a": {"exact": "1"}}}]}`,
			[]string{"/ !a -> to", "/ !a=1 -> to"},
		},
		{
			"an absent header", `{"match": [{"withoutHeaders": {"a": {}}}]}`, []string{"/ !a -> to"},
		},
		{
			"two headers", `{"match": [{"withoutHeaders": {"a": {"exact": "1"}, "b": {"prefix": "2"}}}]}`,
			[]string{"/ !a !b -> to", "/ !a=1 !b -> to", "/ !a !b^2 -> to", "/ !a=1 !b^2 -> to"},
		},
		{
			"an empty value is excluded, so a missing header is", `{"match": [{"withoutHeaders": {"a": {"regex": "x?"}}}]}`,
			[]string{"/ a !a~x? -> to"},
		},
		{"calls are POST", `{"match": [{"method": {"regex": "POST|PUT"}}]}`, []string{"/ -> to"}},
		{"clients see no pseudo headers", `{"match": [{"scheme": {"exact": "http"}}, {"authority": {"prefix": "a"}}, {"headers": {"x": {"exact": "y"}}}]}`, []string{"/ x=y -> to"}},
		{"calls are not GET", `{"match": [{"method": {"exact": "GET"}}]}`, []string{"/ -> own fails with 12"}},
		{"calls have no query", `{"match": [{"queryParams": {"a": {}}}]}`, []string{"/ -> own fails with 12"}},
		{"calls have no claims", `{"match": [{"headers": {"@request.auth.claims.a": {"exact": "1"}}}]}`, []string{"/ -> own fails with 12"}},
		{"they lack every claim", `{"match": [{"withoutHeaders": {"@request.auth.claims.a": {"exact": "1"}}}]}`, []string{"/ -> to"}},
		{"a redirect", `{"match": [{"uri": {"prefix": "/a"}}], "redirect": {"uri": "/b"}}`, []string{"/a -> own fails with 2"}},
		{"a direct response", `{"match": [{"uri": {"exact": "/a"}}], "directResponse": {"status": 503}}`, []string{"/a -> own fails with 14"}},
		{"not found", `{"directResponse": {"status": 404, "body": {"string": "x"}}}`, []string{"/ -> own fails with 12"}},
		{
			"what only a proxy does",
			`{"corsPolicy": {"allowOrigins": [{"exact": "*"}]}, "mirror": {"host": "m"}, "rewrite": {"uri": "/x", "authority": "y"},
			  "headers": {"request": {"set": {"a": "b"}}}}`,
			[]string{"/ -> to"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			rule := decode(t, []byte(tc.rule), &networking.HTTPRoute{})
			if rule.GetRedirect() == nil && rule.GetDirectResponse() == nil {
				rule.Route = []*networking.HTTPRouteDestination{{Destination: &networking.Destination{Host: "to"}}}
			}
			scope.Cluster = func(d *networking.Destination) string { return d.GetHost() }
			var got []string
			routes := scope.Routes([]*networking.HTTPRoute{rule})
			validRoutes(t, routes)
			for _, r := range routes {
				got = append(got, grpcText(t, r))
				if a := r.GetRoute(); len(a.GetRequestMirrorPolicies()) > 0 || a.GetPrefixRewrite() != "" ||
					a.GetHostRewriteSpecifier() != nil || len(r.GetRequestHeadersToAdd()) > 0 {
					t.Errorf("%v has what gRPC clients do not do", r)
				}
			}
			check(t, "routes", got, tc.want)
		})
	}
}

// A client that rejects a single header operation, match or fault would reject the whole route
// configuration.
func TestRoutesLeaveOutWhatClientsRefuse(t *testing.T) {
	long := strings.Repeat("x", 20000)
	for _, rule := range []string{
		`{"match": [{"uri": {"regex": "("}}, {"headers": {"a": {"regex": "*"}}}, {"headers": {"a": {"prefix": ""}}}]}`,
		`{"match": [{"queryParams": {"": {}}}, {"queryParams": {"a": {"prefix": ""}}}, {"headers": {"": {}}}, {"method": {}}]}`,
		`{"match": [{"headers": {"@request.auth.claims.a": {}}}, {"headers": {"@request.auth.claims[": {"regex": "("}}}]}`,
		`{"fault": {"delay": {"percentage": {"value": 5}}, "abort": {"httpStatus": 7}}}`,
		`{"fault": {"abort": {"grpcStatus": "SAD"}}, "corsPolicy": {"allowOrigins": [{}, {"prefix": ""}, {"regex": "("}]}}`,
		`{"headers": {"request": {"set": {"": "x", ":path": "x", "a": "` + long + `"}, "remove": ["", ":path", "host"]}}}`,
		`{"retries": {"attempts": 1, "backoff": "0s"}, "rewrite": {"uriRegexRewrite": {"match": "("}}}`,
		`{"timeout": "-1s", "mirrors": [{}, {"destination": {"host": "a"}, "percentage": {"value": 1000}}]}`,
		`{"redirect": {"redirectCode": 200}}`, `{"redirect": {"port": 100000}}`,
		`{"route": [{"weight": 2147483647}, {"weight": 2147483647}, {"weight": 2147483647}]}`, `{"route": [{"weight": 0}, {"weight": -1}]}`,
		`{"directResponse": {"status": 200, "body": {"string": "` + strings.Repeat(long, 60) + `"}}}`,
	} {
		for _, client := range []envoy.Client{envoy.ForEnvoy, envoy.ForGRPC} {
			rule := decode(t, []byte(rule), &networking.HTTPRoute{})
			if len(rule.GetRoute()) == 0 && rule.GetRedirect() == nil && rule.GetDirectResponse() == nil {
				rule.Route = []*networking.HTTPRouteDestination{{Destination: &networking.Destination{Host: "to"}}}
			}
			routes := (&xdsbuild.RouteScope{Client: client, Port: 80, ServiceCluster: "own"}).Routes([]*networking.HTTPRoute{rule})
			validRoutes(t, routes)
			for _, r := range routes {
				if len(r.GetDirectResponse().GetBody().GetInlineString()) > 1<<20 {
					t.Errorf("%s: a body that Envoy refuses", client)
				}
			}
		}
	}
}

// C-core expects a sum of weights of 100 unless the sum is set, and grpc-js rejects a fault without
// a percentage. A delay always has one.
func TestGRPCWeightsAndFaults(t *testing.T) {
	rule := decode(t, []byte(`{"fault": {"delay": {"fixedDelay": "1s"}, "abort": {"httpStatus": 503, "percentage": {"value": 5}}},
		"route": [{"destination": {"host": "a"}, "weight": 3}, {"destination": {"host": "b"}, "weight": 2}]}`), &networking.HTTPRoute{})
	scope := &xdsbuild.RouteScope{Client: envoy.ForGRPC, Port: 80, ServiceCluster: "own"}
	route := scope.Routes([]*networking.HTTPRoute{rule})[0]
	if sum := route.GetRoute().GetWeightedClusters().GetTotalWeight().GetValue(); sum != 5 { //nolint:staticcheck // On purpose.
		t.Errorf("sum of the weights: %d, want 5", sum)
	}
	for percent, want := range map[int32]uint32{0: 0, 30: 30, 300: 100, -3: 0} {
		rule.Fault.Delay.Percent = percent //nolint:staticcheck // Users still write it.
		var fault httpfault.HTTPFault
		err := scope.Routes([]*networking.HTTPRoute{rule})[0].GetTypedPerFilterConfig()["envoy.filters.http.fault"].UnmarshalTo(&fault)
		if share := fault.GetDelay().GetPercentage(); err != nil || share == nil || share.GetNumerator() != want || fault.GetAbort() == nil {
			t.Errorf("percent %d: fault %v (%v), want the abort and a delay of %d %%", percent, &fault, err, want)
		}
	}
	rule.Fault.Delay, rule.Fault.Abort.Percentage = nil, nil
	if route := scope.Routes([]*networking.HTTPRoute{rule})[0]; len(route.GetTypedPerFilterConfig()) > 0 {
		t.Errorf("faults that are never injected: %v", route)
	}
}
