// SPDX-License-Identifier: Apache-2.0

package ads_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	xdscache "github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	serverv3 "github.com/envoyproxy/go-control-plane/pkg/server/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/pilotkit/pilotkit/internal/test/cputime"
	"github.com/pilotkit/pilotkit/internal/xdsbuild"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// linear is go-control-plane's LinearCache of one type, behind its server.
type linear struct {
	*xdscache.LinearCache
	address string
}

// serveLinear serves resources of a type over ADS.
func serveLinear(b *testing.B, typeURL string, resources map[string]types.Resource) *linear {
	b.Helper()
	l := &linear{LinearCache: xdscache.NewLinearCache(typeURL, xdscache.WithInitialResources(resources))}
	mux := &xdscache.MuxCache{
		Classify:      func(*xdscache.Request) string { return "" },
		ClassifyDelta: func(*xdscache.DeltaRequest) string { return "" },
		Caches:        map[string]xdscache.Cache{"": l.LinearCache},
	}
	ctx, cancel := context.WithCancel(context.Background())
	server := grpc.NewServer()
	discovery.RegisterAggregatedDiscoveryServiceServer(server, serverv3.NewServer(ctx, mux, nil))
	listener := listen(b)
	l.address = listener.Addr().String()
	var running sync.WaitGroup
	running.Go(func() { _ = server.Serve(listener) })
	b.Cleanup(func() {
		cancel()
		server.Stop()
		running.Wait()
	})
	return l
}

// clustersOf returns the clusters that our server sends for its services, as
// messages.
func (f *fixture) clustersOf() map[string]types.Resource {
	out := make(map[string]types.Resource)
	for _, s := range f.services.Services() {
		c := xdsbuild.Cluster(s, s.Ports[0], nil, nil, envoy.ForEnvoy)
		out[c.GetName()] = c
	}
	return out
}

var _ types.Resource = (*clusterv3.Cluster)(nil)

// BenchmarkConnect: some wildcard clients of all clusters, in another process,
// connect at once, until each has its first answer. The CPU time is the server's,
// for each client. With versions they come back with everything that they had;
// named clients name all load assignments. Codec is ads with its codec; LinearCache is
// go-control-plane's, with the same clients and resources.
func BenchmarkConnect(b *testing.B) {
	for _, n := range []int{1_000, 10_000} {
		for _, server := range []string{"ads", "codec", "linear"} {
			for _, protocol := range []string{"sotw", "delta", "versions", "named", "named-versions"} {
				if server == "linear" && strings.HasPrefix(protocol, "named") {
					continue
				}
				for _, clients := range []int{1, 50, 200} {
					b.Run(fmt.Sprintf("%s/%s/n=%d/clients=%d", server, protocol, n, clients), func(b *testing.B) {
						benchConnect(b, server, protocol, n, clients)
					})
				}
			}
		}
	}
}

func benchConnect(b *testing.B, server, protocol string, n, clients int) {
	b.Helper()
	f, names := benchServer(b, n)
	address := f.listener.Addr().String()
	switch server {
	case "codec":
		address = f.serveAlso(grpc.ForceServerCodecV2(ads.Codec())).Addr().String()
	case "linear":
		address = serveLinear(b, envoy.ClusterType, f.clustersOf()).address
	}
	delta := protocol != "sotw"
	command := clientsCommand{Clients: clients, Delta: delta, TypeURL: envoy.ClusterType, Resources: len(names), Leave: true}
	if !strings.HasPrefix(protocol, "named") {
		names = nil
	} else {
		command.TypeURL = envoy.LoadAssignmentType
	}
	var versions map[string]string
	if strings.HasSuffix(protocol, "versions") {
		versions = versionsOf(b, address, command.TypeURL, names, n)
		command.Resources = 0
		// Clients that list their resources get no response to that, but the responses that follow.
		command.Second = firstRequest(b, delta, envoy.ClusterType, []string{cluster("service-00000.example.com")}, nil)
	}
	command.First = firstRequest(b, delta, command.TypeURL, names, versions)
	process := startClients(b, address)
	process.start(clientsCommand{}) // it runs
	process.wait()
	b.ReportAllocs()
	done := cputime.Report(b, "client", clients)
	for b.Loop() {
		process.start(command)
		process.wait()
	}
	done()
}

func firstRequest(tb testing.TB, delta bool, typeURL string, names []string, versions map[string]string) []byte {
	tb.Helper()
	var m proto.Message = &discovery.DiscoveryRequest{Node: node("a", "shop"), TypeUrl: typeURL, ResourceNames: names}
	if delta {
		m = &discovery.DeltaDiscoveryRequest{
			Node: node("a", "shop"), TypeUrl: typeURL, ResourceNamesSubscribe: names, InitialResourceVersions: versions,
		}
	}
	data, err := proto.Marshal(m)
	if err != nil {
		tb.Fatal(err)
	}
	return data
}

// versionsOf connects and returns the versions of the resources that it is sent.
func versionsOf(b *testing.B, address, typeURL string, names []string, n int) map[string]string {
	b.Helper()
	c := openRaw(b, address, true)
	c.typeURL = typeURL
	first := firstRequest(b, true, typeURL, names, nil)
	if err := c.stream.SendMsg(&first); err != nil {
		b.Fatal(err)
	}
	out := make(map[string]string)
	for len(out) < n {
		c.receive(b)
		for data := c.message; len(data) > 0; {
			number, kind, size := protowire.ConsumeTag(data)
			data = data[size:]
			size = protowire.ConsumeFieldValue(number, kind, data)
			if value, _ := protowire.ConsumeBytes(data); number == 2 {
				r := &discovery.Resource{}
				if err := proto.Unmarshal(value, r); err != nil {
					b.Fatal(err)
				}
				out[r.GetName()] = r.GetVersion()
			}
			data = data[size:]
		}
	}
	return out
}

// BenchmarkReadRequest is the limit of coming back with all versions: decoding the
// request.
func BenchmarkReadRequest(b *testing.B) {
	f, names := benchServer(b, 10_000)
	versions := versionsOf(b, f.listener.Addr().String(), envoy.ClusterType, nil, len(names))
	data := firstRequest(b, true, envoy.ClusterType, nil, versions)
	b.ReportAllocs()
	for b.Loop() {
		if err := proto.Unmarshal(data, &discovery.DeltaDiscoveryRequest{}); err != nil {
			b.Fatal(err)
		}
	}
}

// idle connects clients that have named one resource of their own and wait.
func idle(b *testing.B, address string, clients, views int) {
	b.Helper()
	conns := make([]*grpc.ClientConn, min(clients, 100))
	for i := range conns {
		conns[i] = dialClient(b, address)
	}
	for i := range clients {
		c := &rawClient{stream: newRawStream(b, conns[i%len(conns)], deltaMethod), delta: true, typeURL: envoy.LoadAssignmentType}
		c.send(b, &discovery.DeltaDiscoveryRequest{
			Node: node(fmt.Sprint(i), fmt.Sprintf("ns%d", i%views)), TypeUrl: c.typeURL,
			ResourceNamesSubscribe: []string{cluster(fmt.Sprintf("service-%05d.example.com", 100+i%900))},
		})
		c.receive(b)
	}
}

// BenchmarkIdle: an endpoint changes that no client is subscribed to, with idle clients in some
// views.
func BenchmarkIdle(b *testing.B) {
	for _, clients := range []int{1, 100, 1_000, 10_000} {
		for _, views := range []int{1, 100, 1_000} {
			if views > clients {
				continue
			}
			b.Run(fmt.Sprintf("clients=%d/views=%d", clients, views), func(b *testing.B) {
				f, _ := benchServer(b, 1_000, ads.Options{})
				idle(b, f.listener.Addr().String(), clients, views)
				benchUnseen(b, f)
			})
		}
	}
}

// benchUnseen changes an endpoint that no client is subscribed to, and pushes.
func benchUnseen(b *testing.B, f *fixture) {
	b.Helper()
	const host = "service-00007.example.com"
	old, spare := benchEndpoints(0), benchEndpoints(1)
	f.eds(host, "shop", old...)
	f.waitApplied()
	ctx := context.Background()
	b.ReportAllocs()
	defer cputime.Report(b, "op", 1)()
	for b.Loop() {
		f.EDSDeltaUpdate(shard, host, "shop", []xdsupdate.EndpointChange{{Old: old[0], New: spare[0]}})
		old[0], spare[0] = spare[0], old[0]
		if err := f.Flush(ctx); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkMemory: live heap for each idle connection, and for each client and
// name of 10,000, by wildcard and by name.
func BenchmarkMemory(b *testing.B) {
	heap := func() float64 {
		for range 3 {
			runtime.GC()
		}
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return float64(m.HeapAlloc + m.StackInuse)
	}
	for _, kind := range []string{"idle", "wildcard", "named-delta", "named-sotw"} {
		b.Run(kind, func(b *testing.B) {
			const clients = 100
			n := 10_000
			if kind == "idle" {
				n = 1
			}
			f, names := benchServer(b, n)
			delta := kind != "named-sotw"
			address, typeURL := f.listener.Addr().String(), envoy.LoadAssignmentType
			if kind == "wildcard" {
				names, typeURL = nil, envoy.ClusterType
			}
			connect := func() {
				method := sotwMethod
				if delta {
					method = deltaMethod
				}
				c := &rawClient{stream: dialRaw(b, address, method), delta: delta, typeURL: typeURL, names: names}
				c.subscribe(b, n)
				c.message = nil
			}
			connect() // builds the shared state
			f.waitApplied()
			for b.Loop() {
				before := heap()
				for range clients {
					connect()
				}
				f.waitApplied()
				b.ReportMetric((heap()-before)/clients, "B/connection")
				b.ReportMetric((heap()-before)/clients/float64(n), "B/name")
			}
		})
	}
}

// BenchmarkProxyUpdate: workloads appear that no client is, with many clients.
func BenchmarkProxyUpdate(b *testing.B) {
	for _, clients := range []int{1, 2_000} {
		b.Run(fmt.Sprintf("clients=%d", clients), func(b *testing.B) {
			f, _ := benchServer(b, 1_000)
			idle(b, f.listener.Addr().String(), clients, 1)
			b.ReportAllocs()
			for b.Loop() {
				f.ProxyUpdate("c1", "10.255.0.1")
			}
		})
	}
}

// BenchmarkOwnResourceChange is BenchmarkLinearEndpointChange with resources of the
// host's own, on a server without a registry.
func BenchmarkOwnResourceChange(b *testing.B) {
	for _, bench := range []struct{ names, clients int }{{1, 1}, {1, 100}, {1_000, 1}, {10_000, 1}} {
		b.Run(fmt.Sprintf("delta/names=%d/clients=%d", bench.names, bench.clients), func(b *testing.B) {
			f := serveServer(b, ads.New(nil, ads.Options{Debounce: xdsupdate.Debounce{After: -1}}))
			var names []string
			svc := service("x", "shop")
			states := [2][]*registry.Endpoint{benchEndpoints(0), benchEndpoints(1)}
			set := func(host string, state int) {
				svc.Hostname = registry.Hostname(host)
				if err := f.SetResource(cluster(host), xdsbuild.LoadAssignment(svc, svc.Ports[0], states[state], envoy.ForEnvoy)); err != nil {
					b.Fatal(err)
				}
			}
			for i := range max(bench.names, 1_000) {
				host := fmt.Sprintf("service-%05d.example.com", i)
				set(host, 0)
				names = append(names, cluster(host))
			}
			f.flush()
			names = names[7:min(7+bench.names, len(names))]
			var list []*rawClient
			for range bench.clients {
				c := &rawClient{stream: dialRaw(b, f.address(), deltaMethod), delta: true, typeURL: envoy.LoadAssignmentType, names: names}
				c.subscribe(b, len(names))
				list = append(list, c)
			}
			f.waitApplied()
			svc.Hostname = "service-00007.example.com"
			changed := [2]proto.Message{
				xdsbuild.LoadAssignment(svc, svc.Ports[0], states[1], envoy.ForEnvoy), xdsbuild.LoadAssignment(svc, svc.Ports[0], states[0], envoy.ForEnvoy),
			}
			b.ReportAllocs()
			defer cputime.Report(b, "op", 1)()
			for i := 0; b.Loop(); i++ {
				if err := f.SetResource(names[0], changed[i%2]); err != nil {
					b.Fatal(err)
				}
				receiveAll(b, list)
			}
		})
	}
}

// BenchmarkLinearEndpointChange is BenchmarkEndpointChange with LinearCache, delta.
func BenchmarkLinearEndpointChange(b *testing.B) {
	for _, bench := range []struct{ names, clients int }{{1, 1}, {1, 100}, {1_000, 1}, {10_000, 1}} {
		b.Run(fmt.Sprintf("delta/names=%d/clients=%d", bench.names, bench.clients), func(b *testing.B) {
			assignments, names := make(map[string]types.Resource), []string(nil)
			svc := service("x", "shop")
			states := [2][]*registry.Endpoint{benchEndpoints(0), benchEndpoints(1)}
			for i := range max(bench.names, 1_000) {
				svc.Hostname = registry.Hostname(fmt.Sprintf("service-%05d.example.com", i))
				assignments[cluster(string(svc.Hostname))] = xdsbuild.LoadAssignment(svc, svc.Ports[0], states[0], envoy.ForEnvoy)
				names = append(names, cluster(string(svc.Hostname)))
			}
			l := serveLinear(b, envoy.LoadAssignmentType, assignments)
			names = names[7:min(7+bench.names, len(names))]
			svc.Hostname = "service-00007.example.com"
			changed := []types.Resource{
				xdsbuild.LoadAssignment(svc, svc.Ports[0], states[1], envoy.ForEnvoy), xdsbuild.LoadAssignment(svc, svc.Ports[0], states[0], envoy.ForEnvoy),
			}
			var list []*rawClient
			for range bench.clients {
				c := &rawClient{stream: dialRaw(b, l.address, deltaMethod), delta: true, typeURL: envoy.LoadAssignmentType, names: names}
				c.subscribe(b, len(names))
				list = append(list, c)
			}
			b.ReportAllocs()
			defer cputime.Report(b, "op", 1)()
			for i := 0; b.Loop(); i++ {
				if err := l.UpdateResource(names[0], changed[i%2]); err != nil {
					b.Fatal(err)
				}
				receiveAll(b, list)
			}
		})
	}
}
