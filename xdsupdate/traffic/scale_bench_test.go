// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/aggregate"
	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	storememory "github.com/pilotkit/pilotkit/configstore/memory"
	"github.com/pilotkit/pilotkit/internal/test/testserver"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/serviceentry"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

// benchSize is how many services and VirtualServices there are, in as many
// namespaces as there are views of sidecars.
const (
	benchSize       = 10_000
	benchNamespaces = 100
)

// bench is a server with many policies.
type bench struct {
	b      *testing.B
	store  *storememory.Controller
	server *ads.Server
	conn   *grpc.ClientConn
}

func benchObject(kind configstore.GroupVersionKind, i int, prefix string, spec proto.Message) configstore.Config {
	return configstore.Config{Spec: spec, Meta: configstore.Meta{
		GroupVersionKind: kind, Name: fmt.Sprintf("%s%d", prefix, i), Namespace: fmt.Sprintf("ns%d", i%benchNamespaces),
		CreationTimestamp: time.Unix(int64(i), 0),
	}}
}

func scaleHost(i int) string { return fmt.Sprintf("s%d.ns%d.svc.cluster.local", i, i%benchNamespaces) }

func benchService(i, change int) configstore.Config {
	return benchObject(istio.ServiceEntry, i, "s", &networking.ServiceEntry{
		Hosts: []string{scaleHost(i)}, Location: networking.ServiceEntry_MESH_INTERNAL, Resolution: networking.ServiceEntry_STATIC,
		Ports: []*networking.ServicePort{{Number: 80, Name: "http", Protocol: "HTTP"}},
		Endpoints: []*networking.WorkloadEntry{
			{Address: fmt.Sprintf("10.%d.%d.1", i/250, i%250), Labels: map[string]string{"version": "v1"}},
			{Address: fmt.Sprintf("10.%d.%d.%d", i/250, i%250, 2+change%2), Labels: map[string]string{"version": "v2"}},
		},
	})
}

func benchVirtualService(i, change int) configstore.Config {
	return benchObject(istio.VirtualService, i, "v", &networking.VirtualService{
		Hosts: []string{scaleHost(i)}, Gateways: []string{"mesh", "ingress/edge"},
		Http: []*networking.HTTPRoute{{Route: []*networking.HTTPRouteDestination{
			{Destination: &networking.Destination{Host: scaleHost(i), Subset: "v1"}, Weight: int32(50 + change%2)},
			{Destination: &networking.Destination{Host: scaleHost(i), Subset: "v2"}, Weight: 50},
		}}},
	})
}

func benchGateway(change int) configstore.Config {
	hosts := []string{"*"}
	if change%2 == 1 {
		hosts = append(hosts, "new.example.com")
	}
	return configstore.Config{Meta: configstore.Meta{GroupVersionKind: istio.Gateway, Name: "edge", Namespace: "ingress"}, Spec: &networking.Gateway{
		Selector: map[string]string{"app": "edge"},
		Servers: []*networking.Server{
			{Port: &networking.Port{Number: 80, Name: "http", Protocol: "HTTP"}, Hosts: []string{"*"}},
			{Port: &networking.Port{Number: 8080, Name: "alt", Protocol: "HTTP"}, Hosts: hosts[len(hosts)-1:]},
		},
	}}
}

// newBench fills a store and starts a server; sidecars have a Sidecar in each
// namespace, which imports that alone.
func newBench(b *testing.B, sidecars bool) *bench {
	b.Helper()
	x := &bench{b: b, store: storememory.NewController(storememory.Make(istio.Schemas(), storememory.Options{SkipValidation: true}))}
	create := func(c configstore.Config) {
		if _, err := x.store.Create(c); err != nil {
			b.Fatal(err)
		}
	}
	for i := range benchSize {
		create(benchService(i, 0))
		create(benchVirtualService(i, 0))
		create(benchObject(istio.DestinationRule, i, "d", &networking.DestinationRule{
			Host: scaleHost(i), Subsets: []*networking.Subset{
				{Name: "v1", Labels: map[string]string{"version": "v1"}}, {Name: "v2", Labels: map[string]string{"version": "v2"}},
			},
		}))
	}
	create(benchGateway(0))
	for i := range benchNamespaces {
		if sidecars {
			create(benchObject(istio.Sidecar, i, "only", &networking.Sidecar{Egress: []*networking.IstioEgressListener{{Hosts: []string{"./*"}}}}))
		}
	}
	registries := aggregate.NewController()
	x.server = ads.New(registries, ads.Options{Providers: []ads.Provider{traffic.New(x.store)}})
	registries.AddRegistry(func(updater xdsupdate.XDSUpdater) registry.Instance {
		return serviceentry.New(x.store, updater, serviceentry.Options{ClusterID: "c1"})
	})
	x.store.Drain()
	x.serve()
	return x
}

func (x *bench) serve() {
	server := grpc.NewServer()
	x.server.Register(server)
	x.conn, _ = testserver.ServeMemory(x.b, server, x.server.Run)
}

// connect connects a client and waits for the answers to its subscriptions.
func (x *bench) connect(i int, kind, namespace string, labels map[string]any, subscriptions map[string][]string) {
	x.connectNode(&core.Node{
		Id: fmt.Sprintf("%s~%s~p%d.%s~x", kind, benchAddress(i), i, namespace), Metadata: benchMetadata(x.b, namespace, labels),
	}, subscriptions)
}

func benchMetadata(b *testing.B, namespace string, labels map[string]any) *structpb.Struct {
	b.Helper()
	metadata, err := structpb.NewStruct(map[string]any{"NAMESPACE": namespace, "CLUSTER_ID": "c1", "LABELS": labels})
	if err != nil {
		b.Fatal(err)
	}
	return metadata
}

// benchAddress is that of a client.
func benchAddress(i int) string { return fmt.Sprintf("10.200.%d.%d", i/250, i%250) }

// connectNode is connect for a node.
func (x *bench) connectNode(node *core.Node, subscriptions map[string][]string) {
	c := xdstest.NewClient(x.conn, xdstest.ClientOptions{Node: node, Delta: true})
	if err := c.Connect(context.Background()); err != nil {
		x.b.Fatal(err)
	}
	x.b.Cleanup(c.Close)
	for typeURL, names := range subscriptions {
		if err := c.Subscribe(typeURL, names...); err != nil {
			x.b.Fatal(err)
		}
		for answered := false; !answered; {
			r, err := c.Next(context.Background())
			if err != nil {
				x.b.Fatal(err)
			}
			answered = r.TypeURL == typeURL
		}
	}
}

func (x *bench) gateways(n int) {
	for i := range n {
		x.connect(i, "router", "ingress", map[string]any{"app": "edge"}, map[string][]string{
			envoy.ListenerType: {"*"}, envoy.RouteType: {"http.80", "http.8080"},
			envoy.ClusterType: {"outbound|80|v2|" + scaleHost(7)}, envoy.LoadAssignmentType: {"outbound|80|v2|" + scaleHost(7)},
		})
	}
}

func (x *bench) sidecars(n int) {
	for i := range n {
		x.connect(i, "sidecar", fmt.Sprintf("ns%d", i%benchNamespaces), nil, map[string][]string{
			envoy.ClusterType: {"*"}, envoy.LoadAssignmentType: {"outbound|80|v2|" + scaleHost(i%benchNamespaces)}, envoy.RouteType: {"80"},
		})
	}
}

// update writes an object and waits until all clients have what follows.
func (x *bench) update(c configstore.Config) {
	if _, err := x.store.Update(c); err != nil {
		x.b.Fatal(err)
	}
	x.store.Drain()
	if err := x.server.WaitApplied(context.Background(), nil); err != nil {
		x.b.Fatal(err)
	}
}

// BenchmarkFleetChange measures from the change of an object to the answers of all
// clients, which share the process. 1,000 sidecars are in 100 views.
func BenchmarkFleetChange(b *testing.B) {
	for _, fleet := range []struct {
		name               string
		gateways, sidecars int
	}{{"gateways=1", 1, 0}, {"gateways=100", 100, 0}, {"sidecars=1000", 0, 1000}} {
		x := newBench(b, fleet.sidecars > 0)
		x.gateways(fleet.gateways)
		x.sidecars(fleet.sidecars)
		for _, change := range []struct {
			name string
			of   func(n int) configstore.Config
		}{
			{"rule", func(n int) configstore.Config { return benchVirtualService(7, n) }},
			{"endpoint", func(n int) configstore.Config { return benchService(7, n) }},
			{"host", benchGateway},
		} {
			b.Run(fleet.name+"/"+change.name, func(b *testing.B) {
				b.ReportAllocs()
				for n := 1; b.Loop(); n++ {
					x.update(change.of(n))
				}
			})
		}
	}
}

// BenchmarkColdStart measures a gateway's first answers with everything to be made,
// and the heap that the policies and resources take.
func BenchmarkColdStart(b *testing.B) {
	for b.Loop() {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		x := newBench(b, false)
		x.gateways(1)
		runtime.GC()
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(after.HeapInuse-before.HeapInuse)/(1<<20), "heap-MiB")
	}
}
