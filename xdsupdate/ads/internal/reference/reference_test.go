// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cespare/xxhash/v2"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	httpauthz "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_authz/v3"
	tcpauthz "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/ext_authz/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	tcp "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/tcp_proxy/v3"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protopath"
	"google.golang.org/protobuf/reflect/protorange"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/pilotkit/pilotkit/internal/test/histories"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// namer makes random messages with names in them.
type namer struct{ *rand.Rand }

func (n namer) name() string { return fmt.Sprint("name-", n.IntN(30)) }

func (n namer) some(most int, each func()) {
	for range n.IntN(most + 1) {
		each()
	}
}

func (n namer) mirrors() (out []*routev3.RouteAction_RequestMirrorPolicy) {
	n.some(2, func() { out = append(out, &routev3.RouteAction_RequestMirrorPolicy{Cluster: n.name()}) })
	return out
}

func (n namer) action() *routev3.RouteAction {
	a := &routev3.RouteAction{RequestMirrorPolicies: n.mirrors()}
	switch n.IntN(3) {
	case 0:
		a.ClusterSpecifier = &routev3.RouteAction_Cluster{Cluster: n.name()}
	case 1:
		weighted := &routev3.WeightedCluster{}
		n.some(3, func() {
			weighted.Clusters = append(weighted.Clusters, &routev3.WeightedCluster_ClusterWeight{Name: n.name(), Weight: wrapperspb.UInt32(1)})
		})
		a.ClusterSpecifier = &routev3.RouteAction_WeightedClusters{WeightedClusters: weighted}
	default:
		a.ClusterSpecifier = &routev3.RouteAction_ClusterHeader{ClusterHeader: "no-cluster"}
	}
	return a
}

func (n namer) virtualHost() *routev3.VirtualHost {
	v := &routev3.VirtualHost{Name: "no-domain"}
	n.some(3, func() { v.Domains = append(v.Domains, n.name()) })
	n.some(3, func() {
		r := &routev3.Route{Name: "no-name"}
		switch n.IntN(4) {
		case 0:
			r.Action = &routev3.Route_DirectResponse{DirectResponse: &routev3.DirectResponseAction{Status: 404}}
		case 1:
			r.Action = &routev3.Route_Redirect{Redirect: &routev3.RedirectAction{}}
		default:
			r.Action = &routev3.Route_Route{Route: n.action()}
		}
		v.Routes = append(v.Routes, r)
	})
	return v
}

func (n namer) routes() *routev3.RouteConfiguration {
	r := &routev3.RouteConfiguration{Name: "no-routes"}
	n.some(4, func() { r.VirtualHosts = append(r.VirtualHosts, n.virtualHost()) })
	return r
}

func (n namer) filter(tb testing.TB) *listenerv3.Filter {
	tb.Helper()
	var m proto.Message
	switch n.IntN(6) {
	case 0:
		m = &tcp.TcpProxy{ClusterSpecifier: &tcp.TcpProxy_Cluster{Cluster: n.name()}}
	case 1:
		weighted := &tcp.TcpProxy_WeightedCluster{}
		n.some(3, func() {
			weighted.Clusters = append(weighted.Clusters, &tcp.TcpProxy_WeightedCluster_ClusterWeight{Name: n.name(), Weight: 1})
		})
		m = &tcp.TcpProxy{ClusterSpecifier: &tcp.TcpProxy_WeightedClusters{WeightedClusters: weighted}}
	case 2:
		m = &hcm.HttpConnectionManager{RouteSpecifier: &hcm.HttpConnectionManager_Rds{Rds: &hcm.Rds{RouteConfigName: n.name()}}}
	case 3:
		m = &hcm.HttpConnectionManager{RouteSpecifier: &hcm.HttpConnectionManager_RouteConfig{RouteConfig: n.routes()}}
	case 4:
		m = &tcpauthz.ExtAuthz{GrpcService: n.service()}
	default:
		m = wrapperspb.String("no-name")
	}
	if manager, ok := m.(*hcm.HttpConnectionManager); ok {
		n.some(2, func() { manager.HttpFilters = append(manager.HttpFilters, n.httpFilter(tb)) })
	}
	return &listenerv3.Filter{Name: "no-name", ConfigType: &listenerv3.Filter_TypedConfig{TypedConfig: inAny(tb, m)}}
}

// service is one that is asked by gRPC.
func (n namer) service() *core.GrpcService {
	return &core.GrpcService{TargetSpecifier: &core.GrpcService_EnvoyGrpc_{EnvoyGrpc: &core.GrpcService_EnvoyGrpc{ClusterName: n.name()}}}
}

func (n namer) httpFilter(tb testing.TB) *hcm.HttpFilter {
	tb.Helper()
	var m proto.Message
	switch n.IntN(3) {
	case 0:
		m = &httpauthz.ExtAuthz{Services: &httpauthz.ExtAuthz_GrpcService{GrpcService: n.service()}}
	case 1:
		m = &httpauthz.ExtAuthz{Services: &httpauthz.ExtAuthz_HttpService{HttpService: &httpauthz.HttpService{
			ServerUri: &core.HttpUri{Uri: "no-name", HttpUpstreamType: &core.HttpUri_Cluster{Cluster: n.name()}},
		}}}
	default:
		m = wrapperspb.String("no-name")
	}
	return &hcm.HttpFilter{Name: "no-name", ConfigType: &hcm.HttpFilter_TypedConfig{TypedConfig: inAny(tb, m)}}
}

func inAny(tb testing.TB, m proto.Message) *anypb.Any {
	tb.Helper()
	out, err := anypb.New(m)
	if err != nil {
		tb.Fatal(err)
	}
	return out
}

func (n namer) listener(tb testing.TB) *listenerv3.Listener {
	tb.Helper()
	chain := func() *listenerv3.FilterChain {
		c := &listenerv3.FilterChain{Name: "no-name"}
		n.some(2, func() { c.Filters = append(c.Filters, n.filter(tb)) })
		return c
	}
	l := &listenerv3.Listener{Name: "no-name"}
	n.some(3, func() { l.FilterChains = append(l.FilterChains, chain()) })
	n.some(1, func() { l.DefaultFilterChain = chain() })
	return l
}

// walked returns the names in a message, found by reflection.
func walked(tb testing.TB, m proto.Message) *Set {
	tb.Helper()
	var clusters, domains []uint64
	var routes []string
	err := protorange.Range(m.ProtoReflect(), func(p protopath.Values) error {
		last := p.Index(-1)
		if last.Step.Kind() != protopath.FieldAccessStep {
			return nil
		}
		switch last.Step.FieldDescriptor().FullName() {
		case "envoy.config.route.v3.RouteAction.cluster",
			"envoy.config.route.v3.WeightedCluster.ClusterWeight.name",
			"envoy.config.route.v3.RouteAction.RequestMirrorPolicy.cluster",
			"envoy.config.core.v3.GrpcService.EnvoyGrpc.cluster_name",
			"envoy.config.core.v3.HttpUri.cluster",
			"envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy.cluster",
			"envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy.WeightedCluster.ClusterWeight.name":
			clusters = append(clusters, xxhash.Sum64String(last.Value.String()))
		case "envoy.extensions.filters.network.http_connection_manager.v3.Rds.route_config_name":
			routes = append(routes, last.Value.String())
		}
		return nil
	})
	if err != nil {
		tb.Fatal(err)
	}
	if config, ok := m.(*routev3.RouteConfiguration); ok {
		for _, host := range config.GetVirtualHosts() {
			if slices.ContainsFunc(host.GetRoutes(), func(r *routev3.Route) bool { return r.GetRoute() != nil || r.GetRedirect() != nil }) {
				for _, domain := range host.GetDomains() {
					domains = append(domains, xxhash.Sum64String(domain))
				}
			}
		}
	}
	return &Set{Clusters: NewHashes(clusters), Routes: routes, Domains: NewHashes(domains)}
}

// TestFindReferences compares the references of an encoded resource with those of its message.
func TestFindReferences(t *testing.T) {
	for _, seed := range histories.Seeds(t, 500) {
		n := namer{rand.New(rand.NewPCG(seed, 1))}
		routes := n.routes()
		routes.RequestMirrorPolicies = n.mirrors()
		for _, host := range routes.GetVirtualHosts() {
			host.RequestMirrorPolicies = n.mirrors()
		}
		for typeURL, m := range map[string]proto.Message{envoy.RouteType: routes, envoy.ListenerType: n.listener(t)} {
			encoded, err := proto.Marshal(m)
			if err != nil {
				t.Fatal(err)
			}
			got, want := Find(typeURL, "", encoded), walked(t, m)
			slices.Sort(got.Routes)
			slices.Sort(want.Routes)
			for i := range encoded {
				Find(typeURL, "", encoded[:i]) // truncated messages do no harm
			}
			if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(Set{}), cmpopts.EquateEmpty()); diff != "" {
				t.Fatalf("seed %d: %T (-want +got):\n%s", seed, m, diff)
			}
		}
	}
}

// TestClusterNamesAmong: the names in a list of hashes are found whichever of both is longer.
func TestClusterNamesAmong(t *testing.T) {
	var list []string
	for i := range 40 {
		list = append(list, fmt.Sprint("c", i))
	}
	names := NewClusterNames(list, func(name string) string { return name })
	hash := func(names ...string) (out []uint64) {
		for _, name := range names {
			out = append(out, xxhash.Sum64String(name))
		}
		return out
	}
	for _, test := range []struct{ h, want []string }{
		{[]string{"c1", "c39", "other"}, []string{"c1", "c39"}},
		{[]string{"other"}, nil},
		{nil, nil},
		{[]string{"c1", "c2", "c3", "c4", "c5", "c6", "other"}, []string{"c1", "c2", "c3", "c4", "c5", "c6"}},
	} {
		got := slices.Sorted(names.Among(NewHashes(hash(test.h...))))
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", test.h, diff)
		}
		for range names.Among(NewHashes(hash(test.h...))) {
			break // the first is enough
		}
	}
	if !names.Has("c7") || names.Has("other") {
		t.Error("has is wrong")
	}
}
