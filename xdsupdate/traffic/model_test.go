// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/pilotkit/pilotkit/aggregate"
	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	storememory "github.com/pilotkit/pilotkit/configstore/memory"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/serviceentry"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

// modelTypes are the types that clients subscribe to.
var modelTypes = []string{envoy.ClusterType, envoy.LoadAssignmentType, envoy.ListenerType, envoy.RouteType}

// modelTimeout is far more than a step takes.
const modelTimeout = 2 * time.Minute

// TestModel plays random histories of all kinds. After each step every client has
// just what a computation from scratch gives for it, and was sent nothing that it
// had.
func TestModel(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			newModel(t, seed, Options{}, slog.New(slog.NewTextHandler(failing{t}, nil))).play(40)
		})
	}
}

// TestModelOfLimits is TestModel with limits that nearly every object exceeds: what there
// is room for depends on objects that are about something else.
func TestModelOfLimits(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			limits := Limits{
				Matches: 2, Routes: 2, RouteBytes: 900, RepeatedBytes: 1000 + 500*int(seed), SharedBytes: 1500, VirtualHosts: 3,
				Clusters: 3, FilterChains: 6, Imports: 3,
			}
			newModel(t, seed, Options{Limits: limits}, slog.New(slog.DiscardHandler)).play(60)
		})
	}
}

// play makes changes, and compares.
func (m *model) play(steps int) {
	for step := range steps {
		what := m.step()
		m.catchUp()
		m.state = m.scratch()
		for _, c := range m.clients {
			c.check(fmt.Sprintf("step %d, %s", step, what))
		}
		if m.t.Failed() {
			return
		}
	}
}

// model is a server with random policies, and its clients.
type model struct {
	t          *testing.T
	rand       *rand.Rand
	store      *storememory.Controller
	registries *aggregate.Controller
	policies   *Policies
	server     *ads.Server
	clients    []*modelClient
	clock      int
	state      *state // from scratch, after the last step
}

func newModel(t *testing.T, seed uint64, options Options, logger *slog.Logger) *model {
	t.Helper()
	m := &model{t: t, rand: rand.New(rand.NewPCG(seed, 1)), registries: aggregate.NewController()}
	m.store = storememory.NewController(storememory.Make(istio.Schemas(), storememory.Options{DetectMutations: true}))
	m.policies = New(m.store, options)
	m.server = ads.New(m.registries, ads.Options{Provider: m.policies, Logger: logger})
	m.registries.Add(func(updater xdsupdate.XDSUpdater) registry.Instance {
		return serviceentry.New(m.store, updater, serviceentry.Options{ClusterID: "c1"})
	})
	for range 20 { // there is something before the clients come
		m.step()
	}
	conn := serveModel(t, m.server)
	for _, c := range []*modelClient{
		{kind: "sidecar", namespace: "shop", labels: registry.Labels{"app": "web", "version": "v1"}, locality: "eu/a/1"},
		{kind: "sidecar", namespace: "shop", labels: registry.Labels{"app": "job"}, locality: "us/a/1"},
		{kind: "sidecar", namespace: "billing", labels: registry.Labels{"app": "web"}, locality: "eu/b/1"},
		{kind: "sidecar", namespace: "istio-system"},
		{kind: "router", namespace: "ingress", labels: registry.Labels{"app": "edge"}, ip: "10.9.9.1"},
		{kind: "router", namespace: "shop", labels: registry.Labels{"app": "edge", "role": "inner"}, ip: "10.9.9.2"},
		{kind: "grpc", namespace: "shop", labels: registry.Labels{"app": "web"}, locality: "eu/a/1"},
	} {
		c.model = m
		c.start(conn)
		m.clients = append(m.clients, c)
	}
	ctx, cancel := context.WithTimeout(context.Background(), modelTimeout)
	defer cancel()
	for _, c := range m.clients {
		c.answered(ctx)
	}
	m.catchUp()
	return m
}

// failing fails a test with what is logged: nothing should be.
type failing struct{ t *testing.T }

func (f failing) Write(line []byte) (int, error) {
	f.t.Errorf("logged: %s", line)
	return len(line), nil
}

func serveModel(t *testing.T, s *ads.Server) *grpc.ClientConn {
	t.Helper()
	listener := bufconn.Listen(1 << 20)
	server := grpc.NewServer()
	s.Register(server)
	stop := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() { _ = server.Serve(listener) })
	running.Go(func() { s.Run(stop) })
	conn, err := grpc.NewClient("passthrough:///", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = conn.Close()
		close(stop)
		server.Stop()
		running.Wait()
	})
	return conn
}

// catchUp lets every client have what there is for it.
func (m *model) catchUp() {
	m.t.Helper()
	for range 2 {
		m.store.Drain()
	}
	ctx, cancel := context.WithTimeout(context.Background(), modelTimeout)
	defer cancel()
	if err := m.server.WaitApplied(ctx, nil); err != nil {
		m.t.Fatal(err)
	}
}

// scratch is the state computed from scratch.
func (m *model) scratch() *state {
	w := newListWorld(slices.Clone(m.registries.Services())...)
	w.index = m.server.EndpointIndex()
	return newState(newIndex(m.store, m.policies.settings), w)
}

// step makes one random change, and returns it. Most are valid.
func (m *model) step() string {
	kind, name, namespace, spec := m.object()
	if m.rand.IntN(4) == 0 {
		err := m.store.Delete(kind, name, namespace, nil)
		return fmt.Sprintf("delete %s %s/%s: %v", kind.Kind, namespace, name, err)
	}
	m.clock++
	c := configstore.Config{Spec: spec, Meta: configstore.Meta{
		GroupVersionKind: kind, Name: name, Namespace: namespace,
		CreationTimestamp: time.Unix(int64(1000+m.rand.IntN(5)*1000+m.clock), 0),
	}}
	verb := "create"
	_, err := m.store.Create(c)
	if m.store.Get(kind, name, namespace) != nil && err != nil {
		verb = "update"
		_, err = m.store.Update(c)
	}
	return fmt.Sprintf("%s %s %s/%s %v: %v", verb, kind.Kind, namespace, name, spec, err)
}

// modelClient is a delta client that is subscribed to everything that it may have.
type modelClient struct {
	*xdstest.Client
	model               *model
	kind, namespace, ip string
	labels              registry.Labels
	locality            string
	node                *core.Node
	names               map[string][]string // by type; nil: all
	sent                map[string][]byte
	checked             int
}

func (c *modelClient) start(conn *grpc.ClientConn) {
	t := c.model.t
	t.Helper()
	if c.ip == "" {
		c.ip = fmt.Sprintf("10.8.0.%d", len(c.model.clients)+1)
	}
	labels := make(map[string]any)
	for k, v := range c.labels {
		labels[k] = v
	}
	fields := map[string]any{"NAMESPACE": c.namespace, "CLUSTER_ID": "c1", "INSTANCE_IPS": c.ip, "LABELS": labels}
	kind := c.kind
	if kind == "grpc" {
		kind, fields["GENERATOR"] = "sidecar", "grpc"
	}
	metadata, err := structpb.NewStruct(fields)
	if err != nil {
		t.Fatal(err)
	}
	c.node = &core.Node{Id: fmt.Sprintf("%s~%s~c%d.%s~x", kind, c.ip, len(c.model.clients), c.namespace), Metadata: metadata}
	if c.locality != "" {
		c.node.Locality = &core.Locality{Region: c.locality[:2], Zone: c.locality[3:4], SubZone: c.locality[5:]}
	}
	c.sent = make(map[string][]byte)
	c.names = c.subscriptions()
	c.Client = xdstest.NewClient(conn, xdstest.ClientOptions{Node: c.node, Delta: true})
	if err := c.Connect(context.Background()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	for _, typeURL := range modelTypes {
		names, ok := c.names[typeURL]
		if ok && len(names) == 0 {
			continue
		}
		if names == nil {
			names = []string{"*"}
		}
		if err := c.Subscribe(typeURL, names...); err != nil {
			t.Fatal(err)
		}
	}
}

// answered waits for the first answer to each subscription: then the server knows
// all of them.
func (c *modelClient) answered(ctx context.Context) {
	missing := make(map[string]bool)
	for _, typeURL := range modelTypes {
		names, ok := c.names[typeURL]
		missing[typeURL] = !ok || len(names) > 0
	}
	for missing[envoy.ClusterType] || missing[envoy.LoadAssignmentType] || missing[envoy.ListenerType] || missing[envoy.RouteType] {
		r, err := c.Next(ctx)
		if err != nil {
			c.model.t.Fatal(err)
		}
		missing[r.TypeURL] = false
	}
}

// subscriptions returns the names that the client asks for, by type: all if there is
// nothing for a type, none if there are no names.
func (c *modelClient) subscriptions() map[string][]string {
	out := make(map[string][]string)
	var clusters, listeners, routes []string
	for _, host := range modelHosts {
		for _, port := range modelPorts {
			for _, subset := range []string{"", "v1", "v2"} {
				clusters = append(clusters, envoy.SubsetClusterName(port, subset, registry.Hostname(host)))
			}
			listeners = append(listeners, envoy.ListenerName(port, registry.Hostname(host)))
			routes = append(routes, envoy.ClusterName(port, registry.Hostname(host)))
		}
	}
	out[envoy.LoadAssignmentType] = clusters
	switch c.kind {
	case "grpc":
		out[envoy.ClusterType], out[envoy.ListenerType] = clusters, append(listeners, "cart:80", "cart.shop:80", "orders.billing:8080", modelHosts[0])
		out[envoy.RouteType] = routes
	case "router":
		out[envoy.RouteType] = []string{"http.80", "http.8080", "http.9090", "http.80.0.0.0.0"}
		for _, g := range modelGateways {
			out[envoy.RouteType] = append(out[envoy.RouteType], "https.443.https."+g.name+"."+g.namespace)
		}
	default:
		out[envoy.ListenerType] = []string{}
		out[envoy.RouteType] = append([]string{"80", "8080", "9000", "15000", "unix:///tmp/all"}, listeners...)
	}
	return out
}

// proxy returns what makes a difference in the client, with all of its labels.
func (c *modelClient) proxy() *proxy {
	identity := ads.ProxyOf(c.node)
	if labels := c.model.registries.GetProxyWorkloadLabels(identity); labels != nil {
		identity.Labels = labels
	}
	all := make(map[string]struct{})
	full, _ := topology(identity)
	for key := range full {
		all[key] = struct{}{}
	}
	v := ads.View{Namespace: c.namespace, Cluster: "c1", Policy: newGroup(c.node, identity, all)}
	if c.kind == "grpc" {
		v.Client = envoy.ForGRPC
	}
	p := proxyOf(v)
	if c.kind == "router" {
		p.targetPorts = scratchTargets(c.model.state.world, c.ip)
	}
	return p
}

// scratchTargets computes where services send what is for a router: of several for a
// port the first host counts.
func scratchTargets(w world, ip string) targetPorts {
	out := make(targetPorts)
	for _, name := range slices.Sorted(maps.Keys(maps.Collect(w.hosts()))) {
		for _, svc := range w.named(name) {
			for e := range w.endpoints(svc.Hostname, svc.Attributes.Namespace).All() {
				for _, port := range svc.Ports {
					if _, taken := out[port.Number]; !taken && slices.Contains(e.Addresses, ip) && envoy.Serves(e, port) {
						out[port.Number] = e.EndpointPort
					}
				}
			}
		}
	}
	return out
}

// check compares what the client has with what it should have.
func (c *modelClient) check(when string) {
	t := c.model.t
	t.Helper()
	st, p, has := c.model.state, c.proxy(), c.State()
	who := fmt.Sprintf("%s of %s", c.kind, c.namespace)
	for _, typeURL := range modelTypes {
		if t.Failed() {
			return // One failure is enough to read.
		}
		names, ok := c.names[typeURL]
		if !ok {
			names = st.names(p, typeURL)
		}
		have := has.Resources(typeURL)
		for _, name := range names {
			want := st.resourceSent(p, typeURL, name)
			got, had := have[name]
			delete(have, name)
			switch {
			case want == nil && c.kind == "grpc": // it keeps what has gone
			case want == nil && had:
				t.Errorf("%s: %s has %s, of which there is nothing", when, who, name)
			case want != nil && !had:
				t.Errorf("%s: %s lacks %s", when, who, name)
			case want != nil && !bytes.Equal(got.Any.GetValue(), encode(want)):
				m, _ := got.Message()
				t.Errorf("%s: %s has another %s: %s", when, who, name, cmp.Diff(want, m, protocmp.Transform()))
			}
		}
		for _, name := range slices.Sorted(maps.Keys(have)) {
			t.Errorf("%s: %s has %s, which it should not", when, who, name)
		}
	}
	c.checkRepeated(when + ": " + who)
}

func encode(m proto.Message) []byte {
	out, _ := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	return out
}

// checkRepeated: nothing is sent that the client has, but for the assignments of
// clusters that were sent.
func (c *modelClient) checkRepeated(when string) {
	all := c.Responses()
	clusters := make(map[string]bool)
	for _, r := range all[c.checked:] {
		for _, res := range r.Resources {
			key := r.TypeURL + " " + res.Name
			if bytes.Equal(c.sent[key], res.Any.GetValue()) && (r.TypeURL != envoy.LoadAssignmentType || !clusters[res.Name]) {
				c.model.t.Errorf("%s was sent %s again", when, res.Name)
			}
			clusters[res.Name] = clusters[res.Name] || r.TypeURL == envoy.ClusterType
			c.sent[key] = res.Any.GetValue()
		}
		for _, name := range r.Removed {
			delete(c.sent, r.TypeURL+" "+name)
		}
	}
	c.checked = len(all)
}
