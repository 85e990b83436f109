// SPDX-License-Identifier: Apache-2.0

package csds_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	statusv3 "github.com/envoyproxy/go-control-plane/envoy/service/status/v3"
	matcher "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/pilotkit/pilotkit/internal/test/testmain"
	"github.com/pilotkit/pilotkit/internal/test/testserver"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/csds"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

func TestMain(m *testing.M) { testmain.Verify(m) }

const (
	secretType = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret" //nolint:gosec // a type URL
	password   = "hidden-value"
)

// fixture is a server on a real connection that has resources of all types, and CSDS.
type fixture struct {
	t      *testing.T
	server *ads.Server
	conn   *grpc.ClientConn
}

func serve(t *testing.T, options csds.Options) *fixture {
	t.Helper()
	f := &fixture{t: t, server: ads.New(nil, ads.Options{})}
	for name, m := range map[string]proto.Message{
		"cluster":    &clusterv3.Cluster{Name: "cluster"},
		"assignment": &endpointv3.ClusterLoadAssignment{ClusterName: "assignment"},
		"listener":   &listenerv3.Listener{Name: "listener"},
		"route":      &routev3.RouteConfiguration{Name: "route"},
		"secret": &tlsv3.Secret{Name: "secret", Type: &tlsv3.Secret_GenericSecret{GenericSecret: &tlsv3.GenericSecret{
			Secret: &core.DataSource{Specifier: &core.DataSource_InlineString{InlineString: password}},
		}}},
	} {
		f.set(name, m)
	}
	server := grpc.NewServer()
	f.server.Register(server)
	csds.New(f.server, options).Register(server)
	f.conn, _ = testserver.ServeMemory(t, server, f.server.Run)
	return f
}

func (f *fixture) set(name string, m proto.Message) {
	f.t.Helper()
	if err := f.server.SetResource(name, m); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) context() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	f.t.Cleanup(cancel)
	return ctx
}

// proxy connects a client that subscribes to all types, and rejects clusters with a certain
// alt_stat_name.
func (f *fixture) proxy(node *core.Node, delta bool) {
	f.t.Helper()
	c := xdstest.NewClient(f.conn, xdstest.ClientOptions{Node: node, Delta: delta, Answer: func(r xdstest.Response) error {
		for _, res := range r.Resources {
			m, err := res.Message()
			if c, ok := m.(*clusterv3.Cluster); err != nil || ok && c.GetAltStatName() == "bad" {
				return errors.New("bad is refused")
			}
		}
		return nil
	}})
	f.t.Cleanup(c.Close)
	if err := c.Connect(f.context()); err != nil {
		f.t.Fatal(err)
	}
	names := map[string][]string{
		envoy.ClusterType: {"cluster", "none"}, envoy.LoadAssignmentType: {"assignment"}, envoy.ListenerType: {"listener"},
		envoy.RouteType: {"route"}, secretType: {"secret"},
	}
	for typeURL, names := range names {
		if err := c.Subscribe(typeURL, names...); err != nil {
			f.t.Fatal(err)
		}
	}
	for typeURL, names := range names {
		if err := c.Await(f.context(), func(s xdstest.State) bool { return s.Has(typeURL, names[0]) }); err != nil {
			f.t.Fatal(err)
		}
	}
}

func (f *fixture) applied() {
	f.t.Helper()
	if err := f.server.WaitApplied(f.context(), nil); err != nil && !errors.Is(err, ads.ErrRejected) {
		f.t.Fatal(err)
	}
}

func everybody(context.Context) error { return nil }

func text(exact string) *matcher.StringMatcher {
	return &matcher.StringMatcher{MatchPattern: &matcher.StringMatcher_Exact{Exact: exact}}
}

func byID(id string) *matcher.NodeMatcher { return by(text(id)) }

func by(id *matcher.StringMatcher) *matcher.NodeMatcher { return &matcher.NodeMatcher{NodeId: id} }

// configs returns what each proxy has, as a line for each resource.
func configs(r *statusv3.ClientStatusResponse) map[string][]string {
	out := make(map[string][]string)
	for _, c := range r.GetConfig() {
		for _, g := range c.GetGenericXdsConfigs() {
			kind := g.GetTypeUrl()[strings.LastIndexByte(g.GetTypeUrl(), '.')+1:]
			line := fmt.Sprintf("%s %s %s %s", kind, g.GetName(), g.GetConfigStatus(), g.GetClientStatus())
			if e := g.GetErrorState(); e != nil {
				line += ": " + e.GetDetails()
			}
			if g.GetXdsConfig() != nil {
				line += ", shown"
			}
			out[c.GetNode().GetId()] = append(out[c.GetNode().GetId()], line)
		}
	}
	return out
}

func (f *fixture) fetch(r *statusv3.ClientStatusRequest) *statusv3.ClientStatusResponse {
	f.t.Helper()
	out, err := statusv3.NewClientStatusDiscoveryServiceClient(f.conn).FetchClientStatus(f.context(), r)
	if err != nil {
		f.t.Fatal(err)
	}
	return out
}

// TestCSDS: unary, streaming and raw calls return the same content for each proxy.
func TestCSDS(t *testing.T) {
	t.Parallel()
	f := serve(t, csds.Options{Authorize: everybody})
	f.proxy(&core.Node{Id: "a"}, true)
	f.proxy(&core.Node{Id: "b"}, false)
	f.applied()
	f.set("cluster", &clusterv3.Cluster{Name: "cluster", AltStatName: "bad"})
	f.applied()
	lines := func(shown string) []string {
		return []string{
			"Cluster cluster ERROR NACKED: bad is refused" + shown, "Cluster none NOT_SENT DOES_NOT_EXIST",
			"ClusterLoadAssignment assignment SYNCED ACKED" + shown, "Listener listener SYNCED ACKED" + shown,
			"RouteConfiguration route SYNCED ACKED" + shown, "Secret secret SYNCED ACKED" + shown,
		}
	}
	check := func(what string, got *statusv3.ClientStatusResponse, want map[string][]string) {
		t.Helper()
		if diff := cmp.Diff(want, configs(got)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
		if text := got.String(); strings.Contains(text, password) {
			t.Errorf("%s: %s", what, text)
		}
		if wire, err := proto.Marshal(got); err != nil || strings.Contains(string(wire), password) {
			t.Errorf("%s: %v: a secret is there", what, err)
		}
	}
	check("of all", f.fetch(&statusv3.ClientStatusRequest{}), map[string][]string{"a": lines(", shown"), "b": lines(", shown")})
	check("without contents", f.fetch(&statusv3.ClientStatusRequest{ExcludeResourceContents: true}), map[string][]string{"a": lines(""), "b": lines("")})

	stream, err := statusv3.NewClientStatusDiscoveryServiceClient(f.conn).StreamClientStatus(f.context())
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"a", "b", "nobody"} {
		if err := stream.Send(&statusv3.ClientStatusRequest{NodeMatchers: []*matcher.NodeMatcher{byID(id)}}); err != nil {
			t.Fatal(err)
		}
		got, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		want := map[string][]string{id: lines(", shown")}
		if id == "nobody" {
			want = map[string][]string{}
		}
		check("the stream, "+id, got, want)
	}
	if err := stream.CloseSend(); err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Recv(); !errors.Is(err, io.EOF) {
		t.Errorf("the stream's end: %v", err)
	}

	raw := &statusv3.ClientStatusResponse{}
	method := "/envoy.service.status.v3.ClientStatusDiscoveryService/FetchClientStatus"
	request := &statusv3.ClientStatusRequest{NodeMatchers: []*matcher.NodeMatcher{byID("a"), byID("a")}}
	if err := f.conn.Invoke(f.context(), method, request, raw); err != nil {
		t.Fatal(err)
	}
	check("a raw call", raw, map[string][]string{"a": lines(", shown")})
}

// TestAuthorize: a caller that the host does not accept is rejected.
func TestAuthorize(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		options csds.Options
		token   string
		want    codes.Code
	}{
		"no hook":  {csds.Options{}, "operator", codes.PermissionDenied},
		"accepted": {csds.Options{Authorize: operators}, "operator", codes.OK},
		"refused":  {csds.Options{Authorize: operators}, "proxy", codes.Unauthenticated},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := serve(t, test.options)
			client := statusv3.NewClientStatusDiscoveryServiceClient(f.conn)
			ctx := metadata.AppendToOutgoingContext(f.context(), "token", test.token)
			if _, err := client.FetchClientStatus(ctx, &statusv3.ClientStatusRequest{}); status.Code(err) != test.want {
				t.Errorf("unary: %v", err)
			}
			stream, err := client.StreamClientStatus(ctx)
			if err != nil {
				t.Fatal(err)
			}
			_ = stream.Send(&statusv3.ClientStatusRequest{})
			if _, err := stream.Recv(); status.Code(err) != test.want {
				t.Errorf("streaming: %v", err)
			}
		})
	}
}

func operators(ctx context.Context) error {
	if in, _ := metadata.FromIncomingContext(ctx); slices.Equal(in.Get("token"), []string{"operator"}) {
		return nil
	}
	return status.Error(codes.Unauthenticated, "operators only")
}

// TestNodeMatchers: the proxies that each matcher selects, and the rejected matchers.
func TestNodeMatchers(t *testing.T) {
	t.Parallel()
	f := serve(t, csds.Options{Authorize: everybody})
	labels, err := structpb.NewStruct(map[string]any{
		"app": map[string]any{"name": "shop", "new": true, "tier": 2, "none": nil},
	})
	if err != nil {
		t.Fatal(err)
	}
	f.proxy(&core.Node{Id: "edge-1.shop", Metadata: labels}, true)
	f.proxy(&core.Node{Id: "EDGE-2.shop"}, false)
	f.proxy(&core.Node{Id: "inner.bank"}, true)
	at := func(value *matcher.ValueMatcher, path ...string) *matcher.NodeMatcher {
		m := &matcher.StructMatcher{Value: value}
		for _, key := range path {
			m.Path = append(m.Path, &matcher.StructMatcher_PathSegment{Segment: &matcher.StructMatcher_PathSegment_Key{Key: key}})
		}
		return &matcher.NodeMatcher{NodeMetadatas: []*matcher.StructMatcher{m}}
	}
	isText := func(want string) *matcher.ValueMatcher {
		return &matcher.ValueMatcher{MatchPattern: &matcher.ValueMatcher_StringMatch{StringMatch: text(want)}}
	}
	present := func(want bool) *matcher.ValueMatcher {
		return &matcher.ValueMatcher{MatchPattern: &matcher.ValueMatcher_PresentMatch{PresentMatch: want}}
	}
	isNumber := func(m *matcher.DoubleMatcher) *matcher.ValueMatcher {
		return &matcher.ValueMatcher{MatchPattern: &matcher.ValueMatcher_DoubleMatch{DoubleMatch: m}}
	}
	const first, second, third = "edge-1.shop", "EDGE-2.shop", "inner.bank"
	for name, test := range map[string]struct {
		matchers []*matcher.NodeMatcher
		want     []string // nil if the matcher is rejected
		text     string
	}{
		"none":        {nil, []string{second, first, third}, ""},
		"empty":       {[]*matcher.NodeMatcher{{}}, []string{second, first, third}, ""},
		"exact":       {[]*matcher.NodeMatcher{byID(first)}, []string{first}, ""},
		"either":      {[]*matcher.NodeMatcher{byID(first), byID(third)}, []string{first, third}, ""},
		"prefix":      {[]*matcher.NodeMatcher{by(&matcher.StringMatcher{MatchPattern: &matcher.StringMatcher_Prefix{Prefix: "edge"}})}, []string{first}, ""},
		"ignore case": {[]*matcher.NodeMatcher{by(&matcher.StringMatcher{IgnoreCase: true, MatchPattern: &matcher.StringMatcher_Prefix{Prefix: "Edge"}})}, []string{second, first}, ""},
		"suffix":      {[]*matcher.NodeMatcher{by(&matcher.StringMatcher{MatchPattern: &matcher.StringMatcher_Suffix{Suffix: ".shop"}})}, []string{second, first}, ""},
		"contains":    {[]*matcher.NodeMatcher{by(&matcher.StringMatcher{MatchPattern: &matcher.StringMatcher_Contains{Contains: "2."}})}, []string{second}, ""},
		"whole regex": {[]*matcher.NodeMatcher{by(regex("[a-z]+"))}, []string{}, ""},
		"regex":       {[]*matcher.NodeMatcher{by(regex("[a-z.]+"))}, []string{third}, ""},
		"metadata":    {[]*matcher.NodeMatcher{at(isText("shop"), "app", "name")}, []string{first}, ""},
		"not a text":  {[]*matcher.NodeMatcher{at(isText("true"), "app", "new")}, []string{}, ""},
		"bool":        {[]*matcher.NodeMatcher{at(&matcher.ValueMatcher{MatchPattern: &matcher.ValueMatcher_BoolMatch{BoolMatch: true}}, "app", "new")}, []string{first}, ""},
		"null":        {[]*matcher.NodeMatcher{at(&matcher.ValueMatcher{MatchPattern: &matcher.ValueMatcher_NullMatch_{}}, "app", "none")}, []string{first}, ""},
		"number":      {[]*matcher.NodeMatcher{at(isNumber(&matcher.DoubleMatcher{MatchPattern: &matcher.DoubleMatcher_Exact{Exact: 2}}), "app", "tier")}, []string{first}, ""},
		"present":     {[]*matcher.NodeMatcher{at(present(true), "app")}, []string{first}, ""},
		"absent":      {[]*matcher.NodeMatcher{at(present(false), "app", "other")}, []string{second, first, third}, ""},
		"both":        {[]*matcher.NodeMatcher{{NodeId: text(second), NodeMetadatas: at(present(true), "app").GetNodeMetadatas()}}, []string{}, ""},
		"bad regex":   {[]*matcher.NodeMatcher{byID(first), by(regex("("))}, nil, "node_matchers[1].node_id: safe_regex"},
		"no pattern":  {[]*matcher.NodeMatcher{by(&matcher.StringMatcher{})}, nil, "node_matchers[0].node_id: "},
		"no path":     {[]*matcher.NodeMatcher{at(present(true))}, nil, "node_matchers[0].node_metadatas[0]: path: is empty"},
		"no value":    {[]*matcher.NodeMatcher{at(nil, "app")}, nil, "node_matchers[0].node_metadatas[0]: value: "},
	} {
		answer, err := statusv3.NewClientStatusDiscoveryServiceClient(f.conn).FetchClientStatus(f.context(), &statusv3.ClientStatusRequest{
			NodeMatchers: test.matchers, ExcludeResourceContents: true,
		})
		if test.want == nil {
			if status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), test.text) {
				t.Errorf("%s: %v, want %q", name, err, test.text)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		got := []string{}
		for _, c := range answer.GetConfig() {
			got = append(got, c.GetNode().GetId())
		}
		slices.Sort(got)
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func regex(pattern string) *matcher.StringMatcher {
	return &matcher.StringMatcher{MatchPattern: &matcher.StringMatcher_SafeRegex{SafeRegex: &matcher.RegexMatcher{Regex: pattern}}}
}

// TestConfigDump: the form is Envoy's, each type has its place, and no secret is there.
func TestConfigDump(t *testing.T) {
	t.Parallel()
	f := serve(t, csds.Options{Authorize: everybody})
	f.proxy(&core.Node{Id: "a"}, true)
	f.applied()
	f.set("cluster", &clusterv3.Cluster{Name: "cluster", AltStatName: "bad"})
	f.applied()
	for p := range f.server.Resources(nil) {
		data, err := csds.ConfigDump(p)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(data), password) || !strings.Contains(string(data), "[redacted]") {
			t.Errorf("%s", data)
		}
		var got struct {
			Configs []map[string]json.RawMessage `json:"configs"`
		}
		if err := json.Unmarshal(data, &got); err != nil {
			t.Fatal(err)
		}
		types := []string{}
		for _, c := range got.Configs {
			types = append(types, strings.Trim(string(c["@type"]), `"`))
		}
		const admin = "type.googleapis.com/envoy.admin.v3."
		want := []string{admin + "ClustersConfigDump", admin + "EndpointsConfigDump", admin + "ListenersConfigDump", admin + "RoutesConfigDump", admin + "SecretsConfigDump"}
		if diff := cmp.Diff(want, types); diff != "" {
			t.Errorf("types (-want +got):\n%s", diff)
		}
		var clusters []struct {
			Cluster map[string]any `json:"cluster"`
			Error   struct {
				Details string         `json:"details"`
				Failed  map[string]any `json:"failed_configuration"`
			} `json:"error_state"`
			Status string `json:"client_status"`
		}
		if err := json.Unmarshal(got.Configs[0]["dynamic_active_clusters"], &clusters); err != nil || len(clusters) != 1 {
			t.Fatalf("%v: %s", err, data)
		}
		c := clusters[0]
		if c.Cluster["name"] != "cluster" || c.Cluster["alt_stat_name"] != nil || c.Error.Failed["alt_stat_name"] != "bad" ||
			c.Error.Details != "bad is refused" || c.Status != "NACKED" {
			t.Errorf("%+v", c)
		}
	}
}
