// SPDX-License-Identifier: Apache-2.0

package ads_test

import (
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	tcpproxy "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/tcp_proxy/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

// change is one of a batch of changes of a server's own resources.
type change func(*fixture)

// batch makes changes that belong together.
func (f *fixture) batch(changes ...change) {
	f.t.Helper()
	f.together(func() {
		for _, c := range changes {
			c(f)
		}
	})
	f.flush()
}

// together has own resources that change sets and deletes be set and deleted at once.
func (f *fixture) together(change func()) {
	f.t.Helper()
	f.UpdateResources(func(w ads.ResourceWriter) {
		f.writer = w
		defer func() { f.writer = nil }()
		change()
	})
}

func (f *fixture) SetResource(name string, message proto.Message) error {
	if f.writer != nil {
		return f.writer.SetResource(name, message)
	}
	return f.Server.SetResource(name, message)
}

func (f *fixture) DeleteResource(typeURL, name string) {
	if f.writer != nil {
		f.writer.DeleteResource(typeURL, name)
		return
	}
	f.Server.DeleteResource(typeURL, name)
}

func without(typeURL string, names ...string) change {
	return func(f *fixture) {
		for _, name := range names {
			f.DeleteResource(typeURL, name)
		}
	}
}

// clusters sets clusters and their assignments.
func clusters(names ...string) change {
	return func(f *fixture) {
		f.t.Helper()
		for _, name := range names {
			f.setResource(name, edsCluster(name))
			endpoints(name, 1)(f)
		}
	}
}

func edsCluster(name string) *clusterv3.Cluster {
	return &clusterv3.Cluster{
		Name: name, ConnectTimeout: durationpb.New(time.Second), ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_EDS},
		EdsClusterConfig: &clusterv3.Cluster_EdsClusterConfig{EdsConfig: adsSource()},
	}
}

func adsSource() *core.ConfigSource {
	return &core.ConfigSource{
		ResourceApiVersion: core.ApiVersion_V3, ConfigSourceSpecifier: &core.ConfigSource_Ads{Ads: &core.AggregatedConfigSource{}},
	}
}

// noClusters deletes clusters and their assignments.
func noClusters(names ...string) change {
	return func(f *fixture) {
		without(envoy.ClusterType, names...)(f)
		without(envoy.LoadAssignmentType, names...)(f)
	}
}

// endpoints sets the assignment of a cluster, of one endpoint with some port.
func endpoints(name string, port uint32) change {
	address := &core.Address{Address: &core.Address_SocketAddress{SocketAddress: &core.SocketAddress{
		Address: "10.0.0.1", PortSpecifier: &core.SocketAddress_PortValue{PortValue: port},
	}}}
	return func(f *fixture) {
		f.t.Helper()
		f.setResource(name, &endpointv3.ClusterLoadAssignment{ClusterName: name, Endpoints: []*endpointv3.LocalityLbEndpoints{{
			LbEndpoints: []*endpointv3.LbEndpoint{{
				HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: &endpointv3.Endpoint{Address: address}},
			}},
		}}})
	}
}

// routes sets a route configuration that sends the requests of domains to clusters: pairs
// of a domain and a cluster.
func routes(name string, pairs ...string) change {
	config := &routev3.RouteConfiguration{Name: name}
	for pair := range slices.Chunk(pairs, 2) {
		config.VirtualHosts = append(config.VirtualHosts, &routev3.VirtualHost{
			Name: strconv.Itoa(len(config.VirtualHosts)), Domains: pair[:1], Routes: []*routev3.Route{{
				Match:  &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_Prefix{Prefix: "/"}},
				Action: &routev3.Route_Route{Route: &routev3.RouteAction{ClusterSpecifier: &routev3.RouteAction_Cluster{Cluster: pair[1]}}},
			}},
		})
	}
	return func(f *fixture) {
		f.t.Helper()
		f.setResource(name, config)
	}
}

// httpListener sets a listener that uses route configurations, each in a filter chain.
func httpListener(name string, routes ...string) change {
	var filters []proto.Message
	for _, r := range routes {
		filters = append(filters, &hcm.HttpConnectionManager{StatPrefix: name, RouteSpecifier: &hcm.HttpConnectionManager_Rds{
			Rds: &hcm.Rds{RouteConfigName: r, ConfigSource: adsSource()},
		}})
	}
	return listenerOf(name, filters...)
}

// tcpListener sets a listener that sends connections to a cluster.
func tcpListener(name, cluster string) change {
	return listenerOf(name, &tcpproxy.TcpProxy{StatPrefix: name, ClusterSpecifier: &tcpproxy.TcpProxy_Cluster{Cluster: cluster}})
}

func listenerOf(name string, filters ...proto.Message) change {
	return func(f *fixture) {
		f.t.Helper()
		l := &listenerv3.Listener{Name: name, Address: &core.Address{Address: &core.Address_SocketAddress{
			SocketAddress: &core.SocketAddress{Address: "127.0.0.1", PortSpecifier: &core.SocketAddress_PortValue{PortValue: 80}},
		}}}
		for _, filter := range filters {
			config, err := anypb.New(filter)
			if err != nil {
				f.t.Fatal(err)
			}
			l.FilterChains = append(l.FilterChains, &listenerv3.FilterChain{Filters: []*listenerv3.Filter{{
				Name: "only", ConfigType: &listenerv3.Filter_TypedConfig{TypedConfig: config},
			}}})
		}
		f.setResource(name, l)
	}
}

// manual is a client in a bubble that answers when the test says so.
type manual struct {
	*xdstest.Client
	f       *fixture
	full    bool // responses with clusters and listeners have all resources
	read    int
	waiting []xdstest.Response // not answered
	// sent are the resources that the client was sent, by type and name.
	sent map[string]map[string]string
}

func (f *fixture) manual(delta bool) *manual {
	f.t.Helper()
	return f.manualOf(node("a", "shop"), delta)
}

func (f *fixture) manualOf(n *core.Node, delta bool) *manual {
	f.t.Helper()
	return &manual{
		Client: f.client(xdstest.ClientOptions{Delta: delta, Node: n, Manual: true}), f: f, full: !delta,
		sent: make(map[string]map[string]string),
	}
}

// news returns the resources that the client was sent since the last call, sorted: new or changed
// ones, and removed ones with a minus.
func (m *manual) news() []string {
	m.f.t.Helper()
	synctest.Wait()
	out := []string{}
	all := m.Responses()
	for _, r := range all[m.read:] {
		out = append(out, m.take(r)...)
	}
	m.read = len(all)
	slices.Sort(out)
	return out
}

// take returns the new resources of a response.
func (m *manual) take(r xdstest.Response) (out []string) {
	m.waiting = append(m.waiting, r)
	had, now := m.sent[r.TypeURL], make(map[string]string)
	for _, res := range r.Resources {
		now[res.Name] = string(res.Any.GetValue())
		if was, ok := had[res.Name]; ok && was == now[res.Name] && r.TypeURL != envoy.LoadAssignmentType {
			continue
		}
		sign := " "
		if isEmpty(m.f.t, res) {
			sign = " -"
		}
		out = append(out, short(r.TypeURL)+sign+res.Name)
	}
	for name, value := range had {
		_, listed := now[name]
		gone := slices.Contains(r.Removed, name) || m.full && (r.TypeURL == envoy.ClusterType || r.TypeURL == envoy.ListenerType)
		switch {
		case listed:
		case gone:
			out = append(out, short(r.TypeURL)+" -"+name)
		default:
			now[name] = value
		}
	}
	m.sent[r.TypeURL] = now
	return out
}

// isEmpty reports whether a resource is an assignment without endpoints.
func isEmpty(tb testing.TB, r xdstest.Resource) bool {
	tb.Helper()
	message, err := r.Message()
	if err != nil {
		tb.Fatal(err)
	}
	a, ok := message.(*endpointv3.ClusterLoadAssignment)
	return ok && len(a.GetEndpoints()) == 0
}

// accepts has the client accept the responses of types, and returns the resources that it is sent
// then.
func (m *manual) accepts(types ...string) []string {
	m.f.t.Helper()
	m.waiting = slices.DeleteFunc(m.waiting, func(r xdstest.Response) bool {
		if !slices.Contains(types, short(r.TypeURL)) {
			return false
		}
		if err := m.Ack(r); err != nil {
			m.f.t.Fatal(err)
		}
		return true
	})
	return m.news()
}

// acceptsAll has the client accept everything until there is no more.
func (m *manual) acceptsAll() {
	m.f.t.Helper()
	m.news()
	for len(m.waiting) > 0 {
		m.accepts("CDS", "EDS", "LDS", "RDS")
	}
}

// subscribed subscribes to all clusters and listeners, and to names of other types, and
// accepts all of it.
func (m *manual) subscribed(assignments, routes []string) *manual {
	m.f.t.Helper()
	m.f.subscribe(m.Client, envoy.ClusterType)
	m.f.subscribe(m.Client, envoy.ListenerType)
	m.f.subscribe(m.Client, envoy.LoadAssignmentType, assignments...)
	m.f.subscribe(m.Client, envoy.RouteType, routes...)
	m.acceptsAll()
	return m
}

// phasesTest runs a test for both protocols: a server with changes made, and a client that
// has accepted them, which is subscribed to some assignments and routes.
func phasesTest(t *testing.T, o ads.Options, begin []change, test func(f *fixture, m *manual)) {
	t.Helper()
	for name, delta := range protocols() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := serveDiscovery(t, o, nil)
				f.batch(begin...)
				test(f, f.manual(delta).subscribed([]string{"a", "b", "c"}, []string{"r", "s"}))
			})
		})
	}
}
