// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	meshconfig "istio.io/api/mesh/v1alpha1"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	storememory "github.com/pilotkit/pilotkit/configstore/memory"
	"github.com/pilotkit/pilotkit/internal/test/histories"
	"github.com/pilotkit/pilotkit/internal/test/randomobjects"
	"github.com/pilotkit/pilotkit/internal/test/tier"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

// modelTypes are the types that clients subscribe to.
var modelTypes = []string{envoy.ClusterType, envoy.LoadAssignmentType, envoy.ListenerType, envoy.RouteType}

// modelTimeout is far more than a step takes.
const modelTimeout = 2 * time.Minute

// TestModel plays random histories of all kinds. After each step every client has just what
// a server that starts then sends a new client, and was sent nothing that it had. Clients
// come and go, so that what only they see is not needed for some time.
func TestModel(t *testing.T) {
	for _, seed := range histories.Seeds(t, 4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			options := traffic.Options{FilterGatewayClusters: seed%2 == 1, Mesh: modelMesh()}
			newModel(t, seed, options, slog.New(slog.NewTextHandler(failing{t}, nil))).play(modelSteps(40))
		})
	}
}

// TestModelOfLimits is TestModel with limits that nearly every object exceeds: what there
// is room for depends on objects that are about something else.
func TestModelOfLimits(t *testing.T) {
	for _, seed := range histories.Seeds(t, 4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			limits := traffic.Limits{
				Matches: 2, Routes: 2, RouteBytes: 900, RepeatedBytes: 1000 + 500*int(seed), SharedBytes: 1500, VirtualHosts: 3,
				Clusters: 3, FilterChains: 6, Imports: 3,
			}
			newModel(t, seed, traffic.Options{Limits: limits, Mesh: modelMesh()}, slog.New(slog.DiscardHandler)).play(modelSteps(40))
		})
	}
}

// TestModelAfterLargeBatch is TestModel with clients that have received many services, with rules,
// at once.
func TestModelAfterLargeBatch(t *testing.T) {
	for _, many := range []int{300, 5000} {
		t.Run(fmt.Sprint(many), func(t *testing.T) {
			if many > 300 {
				tier.OnlyFull(t, "a large batch")
			}
			t.Parallel()
			m := newModel(t, uint64(many), traffic.Options{Mesh: modelMesh()}, slog.New(slog.NewTextHandler(failing{t}, nil)))
			m.addMany(many)
			m.play(modelSteps(20))
		})
	}
}

// addMany stores objects at once that no step changes.
func (m *model) addMany(n int) {
	m.t.Helper()
	var batch []configstore.Mutation
	add := func(kind configstore.GroupVersionKind, i int, spec proto.Message) {
		c := configstore.Config{Spec: spec, Meta: configstore.Meta{
			GroupVersionKind: kind, Name: fmt.Sprint("many-", i), Namespace: "many", CreationTimestamp: time.Unix(1, 0),
		}}
		batch = append(batch, configstore.Mutation{Op: configstore.OpCreate, Config: c})
	}
	for i := range n {
		host := fmt.Sprintf("many-%d.example.com", i)
		add(istio.ServiceEntry, i, &networking.ServiceEntry{
			Hosts: []string{host}, Ports: []*networking.ServicePort{{Number: 80, Name: "http", Protocol: "HTTP"}},
			Resolution: networking.ServiceEntry_STATIC, Endpoints: []*networking.WorkloadEntry{{Address: fmt.Sprintf("10.1.%d.%d", i/250, i%250)}},
		})
		if i%10 == 0 {
			add(istio.DestinationRule, i, &networking.DestinationRule{Host: host, Subsets: []*networking.Subset{{Name: "v1"}}})
			add(istio.VirtualService, i, toCart("/", nil, host))
		}
	}
	_, err := m.scene.store.Apply(batch...)
	m.scene.must(err)
	m.scene.applied()
	if !slices.ContainsFunc(m.clients, func(c *modelClient) bool { return len(c.State().Resources(envoy.ClusterType)) > n }) {
		m.t.Fatalf("no client has %d clusters", n)
	}
}

func modelSteps(n int) int {
	return tier.Share(n)
}

// modelMesh has a provider for CUSTOM policies, whose service comes and goes.
func modelMesh() *meshconfig.MeshConfig {
	return &meshconfig.MeshConfig{ExtensionProviders: []*meshconfig.MeshConfig_ExtensionProvider{{
		Name: "cart", Provider: &meshconfig.MeshConfig_ExtensionProvider_EnvoyExtAuthzGrpc{
			EnvoyExtAuthzGrpc: &meshconfig.MeshConfig_ExtensionProvider_EnvoyExternalAuthorizationGrpcProvider{
				Service: "cart.shop.svc.cluster.local", Port: 80,
			},
		},
	}}}
}

// failing fails a test with what is logged: nothing should be but of providers that cannot be asked.
type failing struct{ t *testing.T }

func (f failing) Write(line []byte) (int, error) {
	if !strings.Contains(string(line), "spec.provider: it denies more than it says") {
		f.t.Errorf("logged: %s", line)
	}
	return len(line), nil
}

// model is a server with random policies, and its clients.
type model struct {
	t       *testing.T
	rand    *rand.Rand
	options traffic.Options
	scene   *scene
	clients []*modelClient
	clock   int
}

func newModel(t *testing.T, seed uint64, options traffic.Options, logger *slog.Logger) *model {
	t.Helper()
	m := &model{t: t, rand: rand.New(rand.NewPCG(seed, 1)), options: options}
	m.scene = m.newScene(storememory.Options{DetectMutations: true}, logger)
	for range 20 { // there is something before the clients come
		m.step()
	}
	m.scene.serve()
	web, job := []string{"app=web", "version=v1"}, []string{"app=job"}
	for i, n := range []*core.Node{
		modelNode("sidecar", "shop", "eu/a/1", web...), modelNode("sidecar", "shop", "us/a/1", job...), modelNode("sidecar", "shop", "eu/a/1", append(web, "unused=x")...),
		modelNode("sidecar", "billing", "eu/b/1", web...), modelNode("sidecar", "istio-system", ""),
		modelNode("router", "ingress", "", "app=edge"), modelNode("router", "shop", "", "app=edge", "role=inner"), modelNode("grpc", "shop", "eu/a/1", web...),
	} {
		address := fmt.Sprintf("10.9.9.%d", i-4) // the first router's is 10.9.9.1
		if i < 5 {
			address = fmt.Sprintf("10.8.0.%d", i+1)
		}
		if i == 4 {
			address = "fd00::1"
		}
		c := &modelClient{node: at(n, address)}
		c.start(m.scene)
		m.clients = append(m.clients, c)
	}
	m.scene.applied()
	return m
}

func modelNode(kind, namespace, locality string, labels ...string) *core.Node {
	n := in(kind, namespace, append(labels, "topology.istio.io/cluster=c1")...)
	if locality != "" {
		n.Locality = &core.Locality{Region: locality[:2], Zone: locality[3:4], SubZone: locality[5:]}
	}
	return n
}

// newScene makes a server that does not run yet.
func (m *model) newScene(options storememory.Options, logger *slog.Logger) *scene {
	s := &scene{t: m.t, store: storememory.NewController(storememory.Make(istio.Schemas(), options)), clusterID: "c1"}
	s.policies = traffic.New(s.store, m.options)
	s.wire(ads.Options{Providers: []ads.Provider{s.policies}, Logger: logger})
	return s
}

// fresh returns a server that starts with what there is. It knows too what identities
// endpoints had, which the index of endpoints does not take back.
func (m *model) fresh() *scene {
	m.t.Helper()
	s := m.newScene(storememory.Options{}, nil)
	for _, svc := range m.scene.services.Services() {
		var had []*registry.Endpoint
		known := m.scene.server.EndpointIndex().Service(svc.Hostname, svc.Attributes.Namespace)
		for i, account := range append(known.ServiceAccounts(), "") {
			e := &registry.Endpoint{Addresses: []string{fmt.Sprintf("10.7.0.%d", i)}, Shared: &registry.EndpointAttributes{ServiceAccount: account}}
			if known.MutualTLS() {
				e.Shared.TLSMode = "istio"
			}
			had = append(had, e)
		}
		s.server.EDSCacheUpdate(xdsupdate.ShardKey{Provider: registry.External, Cluster: "c1"}, svc.Hostname, svc.Attributes.Namespace, had)
	}
	for _, schema := range istio.Schemas().All() {
		s.create(m.scene.store.List(schema.GroupVersionKind, configstore.NamespaceAll))
	}
	s.serve()
	s.applied()
	return s
}

// play makes changes, and compares.
func (m *model) play(steps int) {
	for step := range steps {
		when := fmt.Sprintf("step %d, %s", step, m.step())
		if onceIn(m.rand, 3) {
			when += ", " + m.step()
		}
		m.scene.applied()
		fresh := m.fresh()
		for i, c := range m.clients {
			if onceIn(m.rand, 6) {
				c.comeOrGo(m.scene)
			}
			if c.Client != nil && !m.t.Failed() { // one failure is enough to read
				c.check(fmt.Sprintf("%s: client %d, %v", when, i, c.node), fresh)
			}
		}
		fresh.close()
		if m.t.Failed() {
			return
		}
	}
}

// step makes one random change, and returns it. Most are valid.
func (m *model) step() string {
	kind, name, namespace, spec := randomobjects.Dice{Rand: m.rand}.Object()
	if m.rand.IntN(4) == 0 {
		err := m.scene.store.Delete(kind, name, namespace, nil)
		return fmt.Sprintf("delete %s %s/%s: %v", kind.Kind, namespace, name, err)
	}
	m.clock++
	_, err := configstore.Upsert(m.scene.store, configstore.Config{Spec: spec, Meta: configstore.Meta{
		GroupVersionKind: kind, Name: name, Namespace: namespace,
		CreationTimestamp: time.Unix(int64(1000+m.rand.IntN(5)*1000+m.clock), 0),
	}})
	return fmt.Sprintf("set %s %s/%s %v: %v", kind.Kind, namespace, name, spec, err)
}

// modelClient is a delta client that is subscribed to everything that it may have.
type modelClient struct {
	*xdstest.Client // nil: it is not there
	node            *core.Node
	sent            map[string][]byte
	checked         int
}

func (c *modelClient) comeOrGo(s *scene) {
	s.t.Helper()
	if c.Client == nil {
		c.start(s)
		s.applied()
		return
	}
	c.Close()
	c.Client = nil
}

// start connects the client, and waits for the first answer to each subscription: then the
// server knows all of them.
func (c *modelClient) start(s *scene) {
	s.t.Helper()
	c.Client = xdstest.NewClient(s.conn, xdstest.ClientOptions{Node: s.numbered(c.node), Delta: true})
	c.sent, c.checked = make(map[string][]byte), 0
	s.must(c.Connect(s.t.Context()))
	s.t.Cleanup(c.Close)
	missing := make(map[string]bool)
	for typeURL, names := range modelNames(c.node) {
		s.must(c.Subscribe(typeURL, names...))
		missing[typeURL] = true
	}
	ctx, cancel := context.WithTimeout(context.Background(), modelTimeout)
	defer cancel()
	for len(missing) > 0 {
		r, err := c.Next(ctx)
		s.must(err)
		delete(missing, r.TypeURL)
	}
}

// modelNames returns the names that a client asks for, by type.
func modelNames(n *core.Node) map[string][]string {
	var clusters, listeners, routes []string
	for _, host := range randomobjects.Hosts() {
		for _, port := range randomobjects.Ports() {
			for _, subset := range []string{"", "v1", "v2"} {
				clusters = append(clusters, envoy.SubsetClusterName(port, subset, registry.Hostname(host)))
			}
			listeners = append(listeners, envoy.ListenerName(port, registry.Hostname(host)))
			routes = append(routes, envoy.ClusterName(port, registry.Hostname(host)))
		}
	}
	out := map[string][]string{envoy.ClusterType: {"*"}, envoy.LoadAssignmentType: clusters}
	switch {
	case isGRPC(n):
		out[envoy.ClusterType], out[envoy.RouteType] = clusters, routes
		out[envoy.ListenerType] = append(listeners, "cart:80", "cart.shop:80", "orders.billing:8080", randomobjects.Hosts()[0])
	case n.GetId()[:6] == "router":
		out[envoy.ListenerType] = []string{"*"}
		out[envoy.RouteType] = []string{"*", "http.80", "http.8080", "http.9090", "http.80.0.0.0.0"}
		for _, g := range randomobjects.Gateways() {
			out[envoy.RouteType] = append(out[envoy.RouteType], "https.443.https."+g.Name+"."+g.Namespace)
		}
	default:
		out[envoy.RouteType] = append([]string{"80", "8080", "9000", "15000", "unix:///tmp/all"}, listeners...)
	}
	return out
}

// check compares what the client has with what a new client of a server is sent.
func (c *modelClient) check(when string, s *scene) {
	s.t.Helper()
	other := &modelClient{node: c.node}
	other.start(s)
	defer other.Close()
	s.applied()
	want, got := other.State(), c.State()
	for _, typeURL := range modelTypes {
		has := got.Resources(typeURL)
		for name, r := range want.Resources(typeURL) {
			if !bytes.Equal(r.Any.GetValue(), has[name].Any.GetValue()) {
				wanted, _ := r.Message()
				if _, had := has[name]; !had {
					s.t.Errorf("%s lacks %s: %v", when, name, wanted)
					return
				}
				m, _ := has[name].Message()
				s.t.Errorf("%s has another %s (-want +got): %s", when, name, cmp.Diff(wanted, m, protocmp.Transform()))
				return
			}
			delete(has, name)
		}
		if len(has) > 0 && !isGRPC(c.node) { // a gRPC client keeps what has gone
			s.t.Errorf("%s has %q, which it should not", when, slices.Sorted(maps.Keys(has)))
		}
	}
	c.checkRepeated(s, when)
}

// checkRepeated: nothing is sent that the client has, but for the assignments of
// clusters that were sent.
func (c *modelClient) checkRepeated(s *scene, when string) {
	s.t.Helper()
	all := c.Responses()
	clusters := make(map[string]bool)
	for _, r := range all[c.checked:] {
		for _, res := range r.Resources {
			key := r.TypeURL + " " + res.Name
			if bytes.Equal(c.sent[key], res.Any.GetValue()) && (r.TypeURL != envoy.LoadAssignmentType || !clusters[res.Name]) {
				s.t.Errorf("%s was sent %s again", when, res.Name)
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
