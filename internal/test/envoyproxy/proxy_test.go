// SPDX-License-Identifier: Apache-2.0

package envoyproxy

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	routerv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	matcher "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
)

func pack(t *testing.T, m proto.Message) *anypb.Any {
	t.Helper()
	out, err := anypb.New(m)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// greeter is a listener of the host that answers every request, if it is as the
// expression says.
func greeter(t *testing.T, expression string) *listenerv3.Listener {
	t.Helper()
	match := &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_Prefix{Prefix: "/"}}
	if expression != "" {
		match.PathSpecifier = &routev3.RouteMatch_SafeRegex{SafeRegex: &matcher.RegexMatcher{Regex: expression}}
	}
	manager := &hcm.HttpConnectionManager{
		StatPrefix: "greeter",
		RouteSpecifier: &hcm.HttpConnectionManager_RouteConfig{RouteConfig: &routev3.RouteConfiguration{
			VirtualHosts: []*routev3.VirtualHost{{Name: "all", Domains: []string{"*"}, Routes: []*routev3.Route{{
				Match: match,
				Action: &routev3.Route_DirectResponse{DirectResponse: &routev3.DirectResponseAction{
					Status: 200, Body: &core.DataSource{Specifier: &core.DataSource_InlineString{InlineString: "hello"}},
				}},
			}}}},
		}},
		HttpFilters: []*hcm.HttpFilter{{Name: "router", ConfigType: &hcm.HttpFilter_TypedConfig{TypedConfig: pack(t, &routerv3.Router{})}}},
	}
	return &listenerv3.Listener{
		Name: "greeter", Address: Address("127.0.0.1", 0),
		FilterChains: []*listenerv3.FilterChain{{Filters: []*listenerv3.Filter{{
			Name: "http", ConfigType: &listenerv3.Filter_TypedConfig{TypedConfig: pack(t, manager)},
		}}}},
	}
}

// TestStart: an Envoy serves its static resources, reports its configuration, and ends.
func TestStart(t *testing.T) {
	for _, program := range Programs(t) {
		t.Run(program.String(), func(t *testing.T) {
			cluster, err := HTTP2Cluster("other", "127.0.0.1:1")
			if err != nil {
				t.Fatal(err)
			}
			p := Start(t, Options{
				Program: program, Node: Node{Kind: "sidecar", Name: "web"}, Runtime: RegexProgramSize(1000),
				Listeners: []*listenerv3.Listener{greeter(t, "")}, Clusters: []*clusterv3.Cluster{cluster},
			})
			p.AwaitReady()
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+p.Listeners()["greeter"], http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			res, err := p.client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			if body, err := io.ReadAll(res.Body); err != nil || string(body) != "hello" {
				t.Errorf("answer %q, %v", body, err)
			}
			p.testPages(t)
			p.Stop()
			if _, _, err := p.ReadAdmin(t.Context(), "/ready"); err == nil {
				t.Error("an Envoy that was stopped answers")
			}
		})
	}
}

func (p *Proxy) testPages(t *testing.T) {
	t.Helper()
	if n := p.Stats(`^http\.greeter\.downstream_rq_2xx$`)["http.greeter.downstream_rq_2xx"]; n != 1 {
		t.Errorf("%d requests counted", n)
	}
	if got := p.Clusters()["other"].GetHostStatuses(); len(got) != 1 {
		t.Errorf("endpoints: %v", got)
	}
	if got := p.Resources("static_listeners"); len(got) != 1 || !strings.Contains(fmt.Sprint(got[0]), `"greeter"`) {
		t.Errorf("static listeners: %v", got)
	}
	if got := p.Resources("dynamic_active_clusters"); len(got) != 0 {
		t.Errorf("dynamic clusters: %v", got)
	}
	if a, b, c, d := p.Refused(), p.Outmoded(), p.Certificates(), p.Unready(); len(a)+len(b)+len(c)+len(d) > 0 {
		t.Errorf("refused %v, outmoded %v, certificates %v, unready %v", a, b, c, d)
	}
}

// TestValidate: the size of regular expressions' programs is bounded, and may be
// raised.
func TestValidate(t *testing.T) {
	for _, program := range Programs(t) {
		o := Options{Listeners: []*listenerv3.Listener{greeter(t, "/api/v[0-9]{1,3}/[a-zA-Z0-9_-]{1,64}/items")}}
		b, err := Bootstrap(o)
		if err != nil {
			t.Fatal(err)
		}
		if err := Validate(t, program, b); err == nil || !strings.Contains(err.Error(), "RE2 program size") {
			t.Errorf("%s: error %v, want one of the size", program, err)
		}
		o.Runtime = RegexProgramSize(32768)
		if b, err = Bootstrap(o); err != nil {
			t.Fatal(err)
		}
		if err := Validate(t, program, b); err != nil {
			t.Error(err)
		}
	}
}
