// SPDX-License-Identifier: Apache-2.0

package envoyproxy

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	bootstrap "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	routerv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// RouteVerdicts asks an Envoy about route configurations, thousands at once: it returns
// for each why the Envoy refuses it, and "" if it does not. Clusters need not exist.
func RouteVerdicts(tb testing.TB, o Options, routes []*routev3.RouteConfiguration) []string {
	tb.Helper()
	listeners := make([]*listenerv3.Listener, len(routes))
	for i, r := range routes {
		r = proto.CloneOf(r)
		r.ValidateClusters = wrapperspb.Bool(false)
		manager := &hcm.HttpConnectionManager{
			StatPrefix: "verdict", RouteSpecifier: &hcm.HttpConnectionManager_RouteConfig{RouteConfig: r},
			HttpFilters: []*hcm.HttpFilter{{
				Name: "envoy.filters.http.router", ConfigType: &hcm.HttpFilter_TypedConfig{TypedConfig: packedAny(tb, &routerv3.Router{})},
			}},
		}
		listeners[i] = &listenerv3.Listener{
			FilterChains: []*listenerv3.FilterChain{{Filters: []*listenerv3.Filter{{
				Name: "envoy.filters.network.http_connection_manager", ConfigType: &listenerv3.Filter_TypedConfig{TypedConfig: packedAny(tb, manager)},
			}}}},
		}
	}
	return ListenerVerdicts(tb, o, listeners)
}

// ListenerVerdicts does the same for listeners. One without an address is not bound.
func ListenerVerdicts(tb testing.TB, o Options, listeners []*listenerv3.Listener) []string {
	tb.Helper()
	response := struct {
		Resources []json.RawMessage `json:"resources"`
	}{}
	for i, l := range listeners {
		l = proto.CloneOf(l)
		l.Name = fmt.Sprint(i)
		if l.Address == nil {
			l.BindToPort = wrapperspb.Bool(false)
			l.Address = Address(fmt.Sprintf("127.0.%d.%d", i>>8&0xff, i&0xff), uint32(10000+i>>16))
		}
		data, err := protojson.Marshal(packedAny(tb, l))
		if err != nil {
			tb.Fatal(err)
		}
		response.Resources = append(response.Resources, data)
	}
	return verdicts(startWithFile(tb, o, response), len(listeners))
}

func packedAny(tb testing.TB, m proto.Message) *anypb.Any {
	tb.Helper()
	out, err := anypb.New(m)
	if err != nil {
		tb.Fatal(err)
	}
	return out
}

// startWithFile starts an Envoy that has its listeners from a file.
func startWithFile(tb testing.TB, o Options, response any) *Proxy {
	tb.Helper()
	data, err := json.Marshal(response)
	if err != nil {
		tb.Fatal(err)
	}
	file := filepath.Join(tb.TempDir(), "listeners.json")
	if err := os.WriteFile(file, data, 0o600); err != nil {
		tb.Fatal(err)
	}
	b, err := Bootstrap(o)
	if err != nil {
		tb.Fatal(err)
	}
	b.DynamicResources = &bootstrap.Bootstrap_DynamicResources{LdsConfig: &core.ConfigSource{
		ResourceApiVersion: core.ApiVersion_V3,
		ConfigSourceSpecifier: &core.ConfigSource_PathConfigSource{
			PathConfigSource: &core.PathConfigSource{Path: file},
		},
	}}
	p := StartWith(tb, o, b)
	p.Await("listeners", func() bool { return len(p.positive(`lds\.update_(success|rejected)$`)) > 0 })
	return p
}

// verdicts reads the errors that the Envoy has for its listeners.
func verdicts(p *Proxy, count int) []string {
	p.tb.Helper()
	defer p.Stop()
	out, seen := make([]string, count), make(map[int]bool)
	for _, data := range p.dump("dynamic_listeners") {
		var l struct {
			Name  string `json:"name"`
			Error *struct {
				Details string `json:"details"`
				Failed  struct {
					Name string `json:"name"`
				} `json:"failed_configuration"`
			} `json:"error_state"`
		}
		if err := json.Unmarshal(data, &l); err != nil {
			p.tb.Fatal(err)
		}
		name, reason := l.Name, ""
		if l.Error != nil {
			name, reason = cmp.Or(name, l.Error.Failed.Name), cmp.Or(l.Error.Details, "refused")
		}
		var i int
		if _, err := fmt.Sscan(name, &i); err != nil || i >= count {
			p.tb.Fatalf("a listener called %q", name)
		}
		out[i] = reason
		seen[i] = true
	}
	if len(seen) != count {
		p.tb.Fatalf("%s says something of %d of %d listeners", p.Program, len(seen), count)
	}
	return out
}
