// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"slices"
	"sync"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/aggregate"
	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	configs "github.com/pilotkit/pilotkit/configstore/memory"
	"github.com/pilotkit/pilotkit/internal/test/cputime"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/serviceentry"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
)

// mesh is the content of a control plane. Each namespace has an equal part of it, and sees no other.
type mesh struct {
	namespaces, entries, endpoints, workloads, rules, clients int
}

// whole is a mesh at the limit of one process.
func whole() mesh {
	return mesh{namespaces: 1_000, entries: 100_000, endpoints: 10, workloads: 100_000, rules: 20_000, clients: 10_000}
}

// part is a mesh with a fraction of the namespaces, which have the same content.
func (m mesh) part(of int) mesh {
	return mesh{m.namespaces / of, m.entries / of, m.endpoints, m.workloads / of, m.rules / of, m.clients / of}
}

func (m mesh) namespace(i int) string { return fmt.Sprintf("ns-%d", i%m.namespaces) }
func (m mesh) host(i int) string {
	return fmt.Sprintf("s%d.%s.example.com", i/m.namespaces, m.namespace(i))
}

// entry is a ServiceEntry with inline endpoints. Its version is in the address of the first one.
func (m mesh) entry(i, version int) configstore.Config {
	spec := &networking.ServiceEntry{
		Hosts: []string{m.host(i)}, ExportTo: []string{"."}, Resolution: networking.ServiceEntry_STATIC,
		Ports: []*networking.ServicePort{{Number: 80, Name: "http", Protocol: "HTTP"}},
	}
	for e := range m.endpoints {
		spec.Endpoints = append(spec.Endpoints, &networking.WorkloadEntry{Address: fmt.Sprintf("10.%d.%d.%d", e, i>>8&255, i&255), Locality: "eu/a"})
	}
	spec.Endpoints[0].Address = fmt.Sprintf("11.%d.%d.%d", version>>16&255, version>>8&255, version&255)
	return configstore.NewConfig(fmt.Sprintf("s%d", i/m.namespaces), m.namespace(i), spec).Config()
}

// contents returns all objects.
func (m mesh) contents() []configstore.Mutation {
	var out []configstore.Mutation
	add := func(c configstore.Config) {
		out = append(out, configstore.Mutation{Op: configstore.OpCreate, Config: c})
	}
	for i := range m.entries {
		add(m.entry(i, 0))
	}
	for n := range m.namespaces { // one service of workloads for each namespace
		add(configstore.NewConfig("workloads", m.namespace(n), &networking.ServiceEntry{
			Hosts: []string{"workloads." + m.namespace(n) + ".example.com"}, ExportTo: []string{"."}, Resolution: networking.ServiceEntry_STATIC,
			Ports:            []*networking.ServicePort{{Number: 80, Name: "http", Protocol: "HTTP"}},
			WorkloadSelector: &networking.WorkloadSelector{Labels: map[string]string{"app": "workload"}},
		}).Config())
	}
	for i := range m.workloads {
		add(configstore.NewConfig(fmt.Sprintf("w%d", i/m.namespaces), m.namespace(i), &networking.WorkloadEntry{
			Address: fmt.Sprintf("12.%d.%d.%d", i>>16&255, i>>8&255, i&255), Labels: map[string]string{"app": "workload"},
		}).Config())
	}
	for i := range m.rules {
		add(configstore.NewConfig(fmt.Sprintf("s%d", i/m.namespaces), m.namespace(i), &networking.VirtualService{
			Hosts: []string{m.host(i)}, ExportTo: []string{"."},
			Http: []*networking.HTTPRoute{{Route: []*networking.HTTPRouteDestination{{Destination: &networking.Destination{Host: m.host(i)}}}}},
		}).Config())
	}
	return out
}

// fill returns a store with all objects.
func (m mesh) fill() *configs.Store {
	store := configs.Make(istio.Schemas())
	for batch := range slices.Chunk(m.contents(), 1_000) {
		must(store.Apply(batch...))
	}
	return store
}

// plane is a control plane whose store has a mesh.
type plane struct {
	store    *configs.Store
	address  string
	services *serviceentry.Controller
	server   *ads.Server
	stop     func()
}

// start starts a control plane on a store, and returns when its first push is done.
func start(store *configs.Store) *plane {
	p := &plane{store: store}
	cache := configs.NewController(store)
	registries := aggregate.NewController()
	p.server = ads.New(registries, ads.Options{Providers: []ads.Provider{traffic.New(cache)}})
	registries.AddRegistry(func(updater xdsupdate.XDSUpdater) registry.Instance {
		p.services = serviceentry.New(cache, updater)
		return p.services
	})
	cache.Drain()
	end := make(chan struct{})
	var running sync.WaitGroup
	for _, run := range []func(<-chan struct{}){cache.Run, registries.Run, p.server.Run} {
		running.Go(func() { run(end) })
	}
	check(p.server.Flush(context.Background()))
	grpcServer := grpc.NewServer(ads.ServerOptions()...)
	p.server.Register(grpcServer)
	l := listen()
	p.address = l.Addr().String()
	stop := serveUntil(grpcServer, l)
	p.stop = func() {
		stop()
		close(end)
		running.Wait()
	}
	return p
}

// proxies are the clients of a mesh: each has the clusters and the routes of its namespace, and load assignments of
// ten services. A connection carries the streams of a hundred.
type proxies struct {
	mesh   mesh
	conns  []*grpc.ClientConn
	closed chan struct{}
	ended  sync.WaitGroup
	moved  chan move // of the first service of a namespace
}

// move is the version of a client; -1 is the first state.
type move struct{ client, version int }

func (m mesh) connect(address string) *proxies {
	p := &proxies{mesh: m, closed: make(chan struct{}), moved: make(chan move, 1024)}
	for i := range m.clients {
		if i%100 == 0 {
			p.conns = append(p.conns, must(grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))))
		}
		stub := discovery.NewAggregatedDiscoveryServiceClient(p.conns[i/100])
		p.ended.Go(func() { p.follow(stub, i) })
	}
	return p
}

// follow is a client until its connection is closed. It comes back if its stream ends, because a server ends streams if
// too many begin at once (ads.Limits).
func (p *proxies) follow(stub discovery.AggregatedDiscoveryServiceClient, client int) {
	for {
		p.stream(stub, client)
		select {
		case <-p.closed:
			return
		case <-time.After(time.Second):
		}
	}
}

// stream follows one stream until it ends.
func (p *proxies) stream(stub discovery.AggregatedDiscoveryServiceClient, client int) {
	stream, err := stub.DeltaAggregatedResources(context.Background(), grpc.WaitForReady(true))
	if err != nil {
		return
	}
	namespace := p.mesh.namespace(client)
	assignments := make([]string, 10)
	for i := range assignments {
		assignments[i] = "outbound|80||" + p.mesh.host(client%p.mesh.namespaces+i*p.mesh.namespaces)
	}
	node := &core.Node{Id: fmt.Sprintf("sidecar~10.0.0.1~app-%d.%s~%s.svc.cluster.local", client, namespace, namespace)}
	// Recv returns the errors of Send.
	for _, of := range []struct {
		typeURL string
		names   []string
	}{{envoy.ClusterType, []string{"*"}}, {envoy.LoadAssignmentType, assignments}, {envoy.RouteType, []string{"80"}}} {
		_ = stream.Send(&discovery.DeltaDiscoveryRequest{Node: node, TypeUrl: of.typeURL, ResourceNamesSubscribe: of.names})
	}
	for missing := map[string]bool{envoy.ClusterType: true, envoy.LoadAssignmentType: true, envoy.RouteType: true}; ; {
		r, err := stream.Recv()
		if err != nil {
			return
		}
		_ = stream.Send(&discovery.DeltaDiscoveryRequest{TypeUrl: r.GetTypeUrl(), ResponseNonce: r.GetNonce()})
		if missing[r.GetTypeUrl()] {
			if delete(missing, r.GetTypeUrl()); len(missing) == 0 {
				p.moved <- move{client, -1}
			}
		}
		for _, resource := range r.GetResources() {
			if r.GetTypeUrl() == envoy.LoadAssignmentType && resource.GetName() == assignments[0] {
				p.moved <- move{client, versionOf(resource)}
			}
		}
	}
}

// versionOf returns the version of an entry whose load assignment this is.
func versionOf(r *discovery.Resource) int {
	var assignment endpointv3.ClusterLoadAssignment
	check(r.GetResource().UnmarshalTo(&assignment))
	for _, e := range assignment.GetEndpoints()[0].GetLbEndpoints() {
		var a, b, c int
		if n, _ := fmt.Sscanf(e.GetEndpoint().GetAddress().GetSocketAddress().GetAddress(), "11.%d.%d.%d", &a, &b, &c); n == 3 {
			return a<<16 | b<<8 | c
		}
	}
	return 0
}

// await returns when the given number of clients have reached a version.
func (p *proxies) await(clients, version int) {
	reached := make(map[int]bool, clients)
	for len(reached) < clients {
		if m := <-p.moved; m.version == version {
			reached[m.client] = true
		}
	}
}

func (p *proxies) close() {
	close(p.closed)
	for _, c := range p.conns {
		check(c.Close())
	}
	ended := make(chan struct{})
	go func() { defer close(ended); p.ended.Wait() }()
	for {
		select {
		case <-p.moved:
		case <-ended:
			return
		}
	}
}

// phase is the cost of a step.
type phase struct {
	name      string
	wall, cpu time.Duration
	heap      int64 // bytes that the step has added
}

// run measures the life of a control plane with the mesh.
func (m mesh) run() (phases []phase, moves []time.Duration) {
	before := heap()
	step := func(name string, f func()) {
		wall, cpu := time.Now(), cputime.Used()
		f()
		p := phase{name: name, wall: time.Since(wall), cpu: cputime.Used() - cpu}
		now := heap()
		p.heap, before = now-before, now
		phases = append(phases, p)
	}
	var store *configs.Store
	step("the configs are in the store", func() { store = m.fill() })
	var p *plane
	step("cold start, to the first push", func() { p = start(store) })
	var clients *proxies
	step("all clients connect", func() {
		clients = m.connect(p.address)
		clients.await(m.clients, -1)
	})
	update := func(i, version int) { must(store.Update(m.entry(i, version))) }
	step("100 changes, one after the other", func() {
		for n := range min(100, m.namespaces) {
			begun := time.Now()
			update(n, n+1)
			clients.await(m.clients/m.namespaces, n+1)
			moves = append(moves, time.Since(begun))
		}
	})
	slices.Sort(moves)
	step("a storm of 10,000 changes", func() {
		const last = 1 << 20
		go func() {
			for i := range 10_000 {
				update(m.namespaces+i*7919%(m.entries-m.namespaces), i)
			}
			for n := range m.namespaces {
				update(n, last)
			}
		}()
		clients.await(m.clients, last)
	})
	step("a restart, and all clients come back", func() {
		clients.close()
		p.stop()
		p = start(store)
		clients = m.connect(p.address)
		clients.await(m.clients, -1)
	})
	clients.close()
	p.stop()
	return phases, moves
}

// heap returns the bytes that are in use after a collection.
func heap() int64 {
	runtime.GC()
	runtime.GC() // the finalizers of the first one have run
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return int64(s.HeapAlloc) //nolint:gosec // less than 2^63
}

// unit is the heap that one object of a kind, or one client, adds.
type unit struct {
	name  string
	bytes float64
	count func(mesh) int
}

// units measures them with meshes that have a kind and lack it.
func (m mesh) units() []unit {
	entries, rules := m, m
	entries.workloads, entries.rules, entries.clients = 0, 0, 0
	rules.workloads, rules.clients = 0, 0
	ofEntries, _ := entries.held()
	ofRules, _ := rules.held()
	ofAll, ofClients := m.held()
	each := func(name string, bytes int64, count func(mesh) int) unit {
		return unit{name, float64(bytes) / float64(count(m)), count}
	}
	return []unit{
		each(fmt.Sprintf("a ServiceEntry with %d endpoints", m.endpoints), ofEntries, func(m mesh) int { return m.entries }),
		each("a VirtualService", ofRules-ofEntries, func(m mesh) int { return m.rules }),
		each("a WorkloadEntry", ofAll-ofRules, func(m mesh) int { return m.workloads }),
		each("a client, with its end in this process", ofClients, func(m mesh) int { return m.clients }),
	}
}

// held returns the heap of a control plane with the mesh, and what all clients add.
func (m mesh) held() (plane, clients int64) {
	before := heap()
	p := start(m.fill())
	plane = heap() - before
	connected := m.connect(p.address)
	connected.await(m.clients, -1)
	clients = heap() - before - plane
	connected.close()
	p.stop()
	return plane, clients
}

// scale writes the costs of a mesh, and of one with a fifth of its namespaces: a linear cost is a fifth there. It is an
// error if the heap differs by more than a third from the sum of the mesh's parts, as they are in a fifth of it.
func scale(w io.Writer, m mesh) error {
	fmt.Fprintf(w, "# A large mesh\n\n%d ServiceEntries with %d endpoints each, %d WorkloadEntries and %d VirtualServices in %d namespaces; %d clients,\n"+
		"which are a part of the process: each has the clusters and the routes of its namespace, and ten load assignments.\n\n",
		m.entries, m.endpoints, m.workloads, m.rules, m.namespaces, m.clients)
	units := m.part(5).units()
	small, _ := m.part(5).run()
	large, moves := m.run()
	fmt.Fprint(w, "| | time | CPU time | heap | CPU time, a fifth of the mesh | growth |\n|---|---|---|---|---|---|\n")
	for i, p := range large {
		fmt.Fprintf(w, "| %s | %v | %v | %+d MB | %v | %.1f × |\n", p.name, round(p.wall), round(p.cpu), p.heap>>20, round(small[i].cpu), float64(p.cpu)/float64(small[i].cpu))
	}
	fmt.Fprintf(w, "\nAn endpoint, from the store to all clients of its namespace: p50 %v, p99 %v.\n", round(moves[len(moves)/2]), round(moves[len(moves)*99/100]))
	fmt.Fprint(w, "\n| heap, measured with a fifth of the mesh | |\n|---|---|\n")
	sum, held := 0.0, 0.0
	for _, u := range units {
		sum += u.bytes * float64(u.count(m))
		fmt.Fprintf(w, "| %s | %.1f kB |\n", u.name, u.bytes/1e3)
	}
	for _, p := range large[:3] { // until all clients are connected
		held += float64(p.heap)
	}
	fmt.Fprintf(w, "\nFor the whole mesh that makes %.0f MB; it has %.0f MB.\n", sum/1e6, held/1e6)
	if ratio := held / sum; ratio < 2.0/3 || ratio > 4.0/3 {
		return fmt.Errorf("the heap is %.2f × the sum of its parts", ratio)
	}
	return nil
}
