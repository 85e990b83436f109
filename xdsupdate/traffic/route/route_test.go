// SPDX-License-Identifier: Apache-2.0

package route_test

import (
	"iter"
	"maps"
	"net/http"
	"testing"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	buffer "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/buffer/v3"
	jwt "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/jwt_authn/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/wrapperspb"
	security "istio.io/api/security/v1beta1"

	"github.com/pilotkit/pilotkit/internal/jwtauthn"
	"github.com/pilotkit/pilotkit/internal/xdsbuild"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/route"
)

// tableOf returns a table of one virtual host for all hosts.
func tableOf(routes ...*routev3.Route) *route.Table {
	return route.NewTable(route.Made{Message: &routev3.RouteConfiguration{
		VirtualHosts: []*routev3.VirtualHost{{Name: "all", Domains: []string{"*"}, Routes: routes}},
	}})
}

// TestUnsupported: content that cannot be evaluated denies, and says so.
func TestUnsupported(t *testing.T) {
	to := (&xdsbuild.RouteScope{}).DefaultRoute("outbound|80||a", nil)
	manager := xdsbuild.GatewayConnectionManager("http", registry.ProtocolHTTP, nil, xdsbuild.HTTPOptions{
		Filters: []*hcm.HttpFilter{xdsbuild.HTTPFilter("other", &buffer.Buffer{MaxRequestBytes: wrapperspb.UInt32(1)})},
	})
	l := route.NewListener(route.Made{Message: &listenerv3.Listener{FilterChains: []*listenerv3.FilterChain{xdsbuild.FilterChain(nil, nil, manager)}}})
	if d := l.Route(route.Request{}, func(string) *route.Table { return tableOf(to) }); d.Outcome != route.Closed || d.Reason != route.Unsupported || d.Access.Allowed {
		t.Errorf("a filter of the host: %+v", d)
	}
	fraction := &routev3.Route{Match: &routev3.RouteMatch{
		PathSpecifier: &routev3.RouteMatch_Prefix{Prefix: "/"}, RuntimeFraction: &core.RuntimeFractionalPercent{},
	}, Action: to.GetAction()}
	header := &routev3.Route{Match: to.GetMatch(), Action: &routev3.Route_Route{Route: &routev3.RouteAction{
		ClusterSpecifier: &routev3.RouteAction_ClusterHeader{ClusterHeader: "x-to"},
	}}}
	for name, r := range map[string]*routev3.Route{"a match": fraction, "a destination": header} {
		if d := tableOf(r, to).Route(route.Request{}); d.Outcome != route.Answered || d.Status != 500 || d.Reason != route.Unsupported {
			t.Errorf("%s: %+v", name, d)
		}
	}
}

// TestTCP: connections go by server names, and those that need a certificate are closed without.
func TestTCP(t *testing.T) {
	forward := func(cluster string) *listenerv3.Filter { return xdsbuild.TCPProxy{Cluster: cluster}.Filter() }
	l := route.NewListener(route.Made{
		Message: xdsbuild.GatewayListener{Bind: "0.0.0.0", Port: 443, TLS: true}.Build([]*listenerv3.FilterChain{
			xdsbuild.FilterChain([]string{"a.com"}, nil, forward("outbound|443||a")),
			xdsbuild.FilterChain([]string{"*.a.com"}, nil, forward("outbound|443||all")),
			xdsbuild.FilterChain([]string{"*.b.a.com"}, nil, forward("outbound|443||b")),
			xdsbuild.FilterChain([]string{"closed.com"}, nil, forward(xdsbuild.BlackHole)),
		}),
		Chains: []route.Origin{{Kind: "VirtualService", Namespace: "shop", Name: "a", Field: "spec.tls[0]"}},
	})
	for name, want := range map[string]string{
		"a.com": "a", "A.com": "a", "x.a.com": "all", "x.b.a.com": "b", "b.a.com": "all", "other.com": "", "": "", "closed.com": "",
	} {
		d := l.Route(route.Request{Protocol: route.TCP, TLS: true, ServerName: name}, nil)
		got := ""
		if d.Destination != nil {
			got = string(d.Destination.Host)
		}
		if got != want || (want == "") != (d.Outcome == route.Closed) {
			t.Errorf("server name %q: to %q (%s), want %q", name, got, d.Reason, want)
		}
		if want == "a" && d.Rule.String() != "VirtualService shop/a, tls[0]" {
			t.Errorf("the rule is %s", d.Rule)
		}
	}
}

// TestUnexpectedTLS: a chain that serves HTTP in plain text takes no TLS handshake; one that forwards
// connections does.
func TestUnexpectedTLS(t *testing.T) {
	manager := xdsbuild.GatewayConnectionManager("http", registry.ProtocolHTTP, nil, xdsbuild.HTTPOptions{})
	for _, c := range []struct {
		filter *listenerv3.Filter
		tls    bool
		want   route.Reason
	}{{manager, false, route.NoVirtualHost}, {manager, true, route.UnexpectedTLS}, {xdsbuild.TCPProxy{Cluster: "c"}.Filter(), true, route.None}} {
		l := route.NewListener(route.Made{Message: xdsbuild.GatewayListener{Bind: "0.0.0.0", Port: 80}.Build(
			[]*listenerv3.FilterChain{xdsbuild.FilterChain(nil, nil, c.filter)},
		)})
		if d := l.Route(route.Request{TLS: c.tls, ServerName: "a.com"}, func(string) *route.Table { return nil }); d.Reason != c.want {
			t.Errorf("TLS %t: %s, want %s", c.tls, d.Reason, c.want)
		}
	}
}

// TestRequests: several Host headers are refused, and several values of a header are one.
func TestRequests(t *testing.T) {
	value := &routev3.HeaderMatcher{Name: "x-a", HeaderMatchSpecifier: &routev3.HeaderMatcher_ExactMatch{ExactMatch: "1,2"}} //nolint:staticcheck // the form of gRPC clients
	r := &routev3.Route{
		Match:  &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_Prefix{Prefix: "/"}, Headers: []*routev3.HeaderMatcher{value}},
		Action: (&xdsbuild.RouteScope{}).DefaultRoute("a", nil).GetAction(),
	}
	if d := tableOf(r).Route(route.Request{Headers: http.Header{"X-A": {"1", "2"}}}); d.Outcome != route.Forwarded {
		t.Errorf("%+v", d)
	}
	if d := tableOf(r).Route(route.Request{Headers: http.Header{"X-A": {"1"}}}); d.Reason != route.NoRule || d.Status != 404 {
		t.Errorf("%+v", d)
	}
	if d := tableOf(r).Route(route.Request{Headers: http.Header{"X-A": {"1", "2"}, "Host": {"a", "b"}}}); d.Reason != route.BadRequest || d.Status != 400 {
		t.Errorf("%+v", d)
	}
}

// TestTokens: a token that the caller has not verified is no missing one, wherever it is. Headers
// with claims are the filter's alone, and a verified token stays here unless it is forwarded.
func TestTokens(t *testing.T) {
	filter := func(forward bool) *jwt.JwtAuthentication {
		return jwtauthn.Config([]jwtauthn.Rule{{Keys: "keys", Spec: &security.JWTRule{
			Issuer: "https://a", ForwardOriginalToken: forward, OutputPayloadToHeader: "x-payload",
			OutputClaimToHeaders: []*security.ClaimToHeader{{Header: "x-sub", Claim: "sub"}, {Header: "x-org", Claim: "org.name"}, {Header: "x-no", Claim: "no"}},
		}}, {Keys: "keys", Spec: &security.JWTRule{
			Issuer: "https://b", FromHeaders: []*security.JWTHeader{{Name: "x-token", Prefix: "T "}, {Name: "host", Prefix: "t."}}, FromParams: []string{"t"}, FromCookies: []string{"c"},
		}}})
	}
	decide := func(config *jwt.JwtAuthentication, r route.Request) route.Decision {
		manager := xdsbuild.GatewayConnectionManager("http", registry.ProtocolHTTP, nil, xdsbuild.HTTPOptions{
			Filters: []*hcm.HttpFilter{xdsbuild.HTTPFilter(jwtauthn.Filter, config)},
		})
		l := route.NewListener(route.Made{Message: &listenerv3.Listener{FilterChains: []*listenerv3.FilterChain{xdsbuild.FilterChain(nil, nil, manager)}}})
		return l.Route(r, func(string) *route.Table {
			return tableOf((&xdsbuild.RouteScope{}).DefaultRoute("outbound|80||a", nil))
		})
	}
	claims := map[string]any{"iss": "https://a", "sub": "eve", "org": map[string]any{"name": []any{"x"}}}
	for name, r := range map[string]route.Request{
		"a bearer":          {Headers: http.Header{"Authorization": {"Bearer x"}}},
		"a second value":    {Headers: http.Header{"Authorization": {"Basic x", "Bearer x"}}},
		"a default param":   {Path: "/?a=b&access_token=x"},
		"an escaped param":  {Path: "/?%74=x"},
		"a header":          {Headers: http.Header{"X-Token": {"T x"}}},
		"the host":          {Authority: "t.x"},
		"a param":           {Path: "/?t=x"},
		"a cookie":          {Headers: http.Header{"Cookie": {"a=b; c=x"}}},
		"an invalid one":    {InvalidToken: true},
		"of another issuer": {Claims: map[string]any{"iss": "https://c"}},
	} {
		if d := decide(filter(false), r); d.Outcome != route.Answered || d.Status != http.StatusUnauthorized || d.Access.Allowed {
			t.Errorf("%s: %v, %d, %s", name, d.Outcome, d.Status, d.Access.Text)
		}
	}
	given := http.Header{"Authorization": {"Bearer x"}, "X-Sub": {"admin"}, "X-No": {"forged"}, "X-Payload": {"forged"}, "Accept": {"*/*"}}
	for name, test := range map[string]struct {
		forward bool
		claims  map[string]any
		headers http.Header
		want    http.Header
	}{
		"without a token": {false, nil, http.Header{"X-Sub": {"admin"}, "Authorization": {"Basic x"}}, http.Header{"Authorization": {"Basic x"}}},
		"with a token": {false, claims, given, http.Header{
			"X-Sub": {"eve"}, "X-Org": {"WyJ4Il0"}, "Accept": {"*/*"}, "X-Payload": {"eyJpc3MiOiJodHRwczovL2EiLCJvcmciOnsibmFtZSI6WyJ4Il19LCJzdWIiOiJldmUifQ"},
		}},
		"with a token that is forwarded": {true, claims, given, http.Header{
			"Authorization": {"Bearer x"}, "X-Sub": {"eve"}, "X-Org": {"WyJ4Il0"}, "Accept": {"*/*"},
			"X-Payload": {"eyJpc3MiOiJodHRwczovL2EiLCJvcmciOnsibmFtZSI6WyJ4Il19LCJzdWIiOiJldmUifQ"},
		}},
	} {
		sent, before := maps.Clone(test.headers), maps.Clone(test.headers)
		d := decide(filter(test.forward), route.Request{Headers: test.headers, Claims: test.claims})
		if route.Apply(d.Request, sent); d.Outcome != route.Forwarded {
			t.Errorf("%s: %v, %s", name, d.Outcome, d.Access.Text)
		}
		if diff := cmp.Diff(test.want, sent); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if diff := cmp.Diff(before, test.headers); diff != "" {
			t.Errorf("%s changes the request:\n%s", name, diff)
		}
	}
}

// TestMergedChanges: names are added up to a limit, and beyond it stand for all of their type.
func TestMergedChanges(t *testing.T) {
	var all route.Changed
	for range 1000 {
		all.Merge(route.Changed{Names: map[string][]string{envoy.ClusterType: {"a"}}})
	}
	all.Merge(route.Changed{Names: map[string][]string{envoy.RouteType: {"r"}}, Types: map[string]bool{envoy.ListenerType: true}})
	if len(all.Names[envoy.ClusterType]) != 1000 || all.Types[envoy.ClusterType] {
		t.Errorf("1000 names: %d, all %t", len(all.Names[envoy.ClusterType]), all.Types[envoy.ClusterType])
	}
	all.Merge(route.Changed{Names: map[string][]string{envoy.ClusterType: {"b"}, envoy.ListenerType: {"l"}}})
	if len(all.Names) != 1 || len(all.Names[envoy.RouteType]) != 1 || !all.Types[envoy.ClusterType] || !all.Types[envoy.ListenerType] {
		t.Errorf("one more: %v, %v", all.Names, all.Types)
	}
}

// listeners are the resources of a gateway with listeners by name.
type listeners map[string]*listenerv3.Listener

func (l listeners) Names(typeURL string) iter.Seq[string] {
	if typeURL != envoy.ListenerType {
		return func(func(string) bool) {}
	}
	return maps.Keys(l)
}

func (l listeners) Has(typeURL, name string) bool {
	return typeURL == envoy.ListenerType && l[name] != nil
}

func (l listeners) Resource(typeURL, name string) route.Made {
	if !l.Has(typeURL, name) {
		return route.Made{}
	}
	return route.Made{Message: l[name]}
}

// TestNamedListenerChanges: a change of one listener by its name is a change of the router.
func TestNamedListenerChanges(t *testing.T) {
	forwarding := func(cluster string) listeners {
		return listeners{"l": xdsbuild.GatewayListener{Bind: "0.0.0.0", Port: 80}.Build([]*listenerv3.FilterChain{
			xdsbuild.FilterChain(nil, nil, xdsbuild.TCPProxy{Cluster: cluster}.Filter()),
		})}
	}
	before := route.New(route.Gateway, forwarding("one"))
	changed := route.Changed{Names: map[string][]string{envoy.ListenerType: {"l"}}}
	after := before.Next(forwarding("two"), changed)
	for want, r := range map[string]*route.Router{"one": before, "two": after} {
		if d := r.Route(route.Request{Port: 80, Protocol: route.TCP}); d.Destination == nil || d.Destination.Cluster != want {
			t.Errorf("want %s: %+v", want, d)
		}
	}
}

// TestDomains: an exact domain, then the longest suffix, then the longest prefix; a wildcard stands for
// at least one character.
func TestDomains(t *testing.T) {
	var hosts []*routev3.VirtualHost
	for _, d := range []string{"a.com", "*.a.com", "*.b.a.com", "x.*", "x.b.*"} {
		hosts = append(hosts, &routev3.VirtualHost{Name: d, Domains: []string{d}})
	}
	table := route.NewTable(route.Made{Message: &routev3.RouteConfiguration{IgnorePortInHostMatching: true, VirtualHosts: hosts}})
	for authority, want := range map[string]string{
		"A.com:80": "a.com", "x.a.com": "*.a.com", "x.b.a.com": "*.b.a.com", ".a.com": "", "x.b.org": "x.b.*", "x.org": "x.*", "x.": "", "b.com": "", "": "",
	} {
		if d := table.Route(route.Request{Authority: authority}); d.VirtualHost != want {
			t.Errorf("%q: %q, want %q", authority, d.VirtualHost, want)
		}
	}
}
