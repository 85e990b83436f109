// SPDX-License-Identifier: Apache-2.0

package ads_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"testing"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/pilotkit/pilotkit/internal/test/cputime"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// BenchmarkSwitch: the routes of clients that behave like Envoys, in another process, move to a new
// service, and the old one is removed, in one push; measured until the last client has accepted the
// removal. At the same time an endpoint changes in the same mesh. One more client never answers.
// The CPU time is the server's.
func BenchmarkSwitch(b *testing.B) {
	for _, clients := range []int{1, 100, 1_000} {
		for _, change := range []string{"endpoint", "switch"} {
			b.Run(fmt.Sprintf("clients=%d/%s", clients, change), func(b *testing.B) {
				s := startSwitches(b, clients)
				next := s.endpoint
				if change == "switch" {
					next = s.move
				}
				next() // the first one builds the state of the first use
				defer cputime.Report(b, "op", 1)()
				for b.Loop() {
					next()
				}
			})
		}
	}
}

// switches is a server whose routes move.
type switches struct {
	*fixture
	others []*registry.Service
	number int // of the service that the route leads to
	ends   []*registry.Endpoint
	in     *json.Encoder
	out    *json.Decoder
	b      *testing.B
}

func movedHost(i int) string { return fmt.Sprintf("moved-%d.example.com", i) }

func movedService(i int) *registry.Service { return service(movedHost(i), "shop", http) }

// startSwitches runs a server of some more services, with clients that have all of it.
func startSwitches(b *testing.B, clients int) *switches {
	b.Helper()
	s := &switches{b: b}
	for _, address := range []string{"10.9.9.8", "10.9.9.9"} {
		e := endpoint(address, 8080)
		e.ServicePortName = "http"
		s.ends = append(s.ends, e)
	}
	for i := range 100 {
		s.others = append(s.others, service(fmt.Sprintf("service-%05d.example.com", i), "shop"))
	}
	s.fixture = serve(b, ads.Options{}, s.with(0)...)
	for _, o := range s.others {
		s.EDSCacheUpdate(shard, o.Hostname, "shop", benchEndpoints(0))
	}
	s.eds(movedHost(0), "shop", s.ends[0])
	s.ConfigUpdate(&xdsupdate.PushRequest{Full: true})
	s.flush()
	in, out := startProcess(b, "TestEnvoysProcess", envoysAddress+"="+s.listener.Addr().String())
	s.in, s.out = json.NewEncoder(in), json.NewDecoder(out)
	s.await(envoysCommand{Clients: clients, Present: cluster(movedHost(0))})
	return s
}

// with returns all services, with that of a number, which the route leads to.
func (s *switches) with(i int) []*registry.Service {
	return append([]*registry.Service{movedService(i)}, s.others...)
}

// await returns when the clients have executed a command.
func (s *switches) await(c envoysCommand) {
	s.b.Helper()
	if err := s.in.Encode(c); err != nil {
		s.b.Fatal(err)
	}
	var done struct{}
	if err := s.out.Decode(&done); err != nil {
		s.b.Fatal(err)
	}
}

// move leads the route to another service.
func (s *switches) move() {
	from, to := movedHost(s.number), movedHost(s.number+1)
	s.number++
	s.UpdateBatch(func(xdsupdate.XDSUpdater) {
		s.eds(to, "shop", s.ends[0])
		s.eds(from, "shop")
		s.define([]string{from, to}, s.with(s.number)...)
	})
	s.await(envoysCommand{Present: cluster(to), Absent: cluster(from)})
}

// endpoint changes the endpoint of the service that the route leads to.
func (s *switches) endpoint() {
	host := registry.Hostname(movedHost(s.number))
	s.EDSDeltaUpdate(shard, host, "shop", []xdsupdate.EndpointChange{{Old: s.ends[0], New: s.ends[1]}})
	s.ends[0], s.ends[1] = s.ends[1], s.ends[0]
	s.await(envoysCommand{Present: cluster(movedHost(s.number)), Address: s.ends[0].Addresses[0]})
}

// envoysAddress is the environment variable that makes a process of this test one of
// clients that do as Envoys do, of the server with that address.
const envoysAddress = "PILOTKIT_ADS_ENVOYS_OF"

// envoysCommand describes the resources that clients wait for; they answer when they have them.
type envoysCommand struct {
	// Clients is the number of clients, besides one that never answers, in the first command.
	Clients int
	// Present and Absent are clusters that they have, and route to, or do not have.
	Present, Absent string
	// Address is that of an endpoint of Present that they have.
	Address string
}

// TestEnvoysProcess is a process of clients.
func TestEnvoysProcess(t *testing.T) {
	address := os.Getenv(envoysAddress)
	if address == "" {
		t.Skip("it is the clients of a benchmark, in a process of their own")
	}
	in, out := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	all := &envoys{}
	all.changed.L = &all.mu
	for {
		var c envoysCommand
		if err := in.Decode(&c); err != nil {
			return
		}
		for i := range c.Clients {
			all.start(t, address, i)
		}
		all.await(c)
		if c.Clients > 0 {
			all.silence(t, address)
		}
		_ = out.Encode(struct{}{})
	}
}

// envoys are the clients of a process.
type envoys struct {
	mu      sync.Mutex
	changed sync.Cond
	list    []*envoyClient
}

// envoyClient behaves like an Envoy, by delta. The mutex of all clients guards its resources.
type envoyClient struct {
	all    *envoys
	stream discovery.AggregatedDiscoveryService_DeltaAggregatedResourcesClient
	silent bool
	// clusters are the clusters that it has: false while they wait for their endpoints.
	clusters map[string]bool
	// waiting are the nonces of responses with clusters that wait for endpoints.
	waiting []string
	routes  []byte
	// endpoints has the last assignments.
	endpoints map[string][]byte
}

// connect opens the stream of a client and subscribes to clusters and routes.
func (e *envoys) connect(t *testing.T, address string, n *core.Node) *envoyClient {
	t.Helper()
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	stream, err := discovery.NewAggregatedDiscoveryServiceClient(conn).DeltaAggregatedResources(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	c := &envoyClient{all: e, stream: stream, clusters: make(map[string]bool), endpoints: make(map[string][]byte)}
	c.send(&discovery.DeltaDiscoveryRequest{Node: n, TypeUrl: envoy.ClusterType})
	c.send(&discovery.DeltaDiscoveryRequest{TypeUrl: envoy.RouteType, ResourceNamesSubscribe: []string{"80"}})
	return c
}

func (c *envoyClient) send(r *discovery.DeltaDiscoveryRequest) {
	if !c.silent {
		_ = c.stream.Send(r) // If the stream has ended, receiving says so.
	}
}

func (e *envoys) start(t *testing.T, address string, i int) {
	t.Helper()
	n := node(fmt.Sprintf("envoy-%d", i), "shop")
	c := e.connect(t, address, n)
	e.mu.Lock()
	e.list = append(e.list, c)
	e.mu.Unlock()
	go c.receive(t)
}

// silence adds a client that answers until it has everything, and then no more.
func (e *envoys) silence(t *testing.T, address string) {
	t.Helper()
	c := e.connect(t, address, node("silent", "shop"))
	for len(c.routes) == 0 || len(c.endpoints) < len(c.clusters) {
		r, err := c.stream.Recv()
		if err != nil {
			t.Error(err)
			return
		}
		c.take(r)
	}
	c.silent = true
	go c.receive(t)
}

func (c *envoyClient) receive(t *testing.T) {
	t.Helper()
	for {
		r, err := c.stream.Recv()
		if err != nil {
			if !errors.Is(err, io.EOF) {
				t.Log(err)
			}
			return
		}
		c.all.mu.Lock()
		c.take(r)
		c.all.changed.Broadcast()
		c.all.mu.Unlock()
	}
}

// take applies a response and answers it, clusters when all have endpoints.
func (c *envoyClient) take(r *discovery.DeltaDiscoveryResponse) {
	switch r.GetTypeUrl() {
	case envoy.ClusterType:
		c.takeClusters(r)
		return
	case envoy.LoadAssignmentType:
		for _, a := range r.GetResources() {
			c.endpoints[a.GetName()] = a.GetResource().GetValue()
			if _, known := c.clusters[a.GetName()]; known {
				c.clusters[a.GetName()] = true
			}
		}
	case envoy.RouteType:
		for _, a := range r.GetResources() {
			c.routes = a.GetResource().GetValue()
		}
	}
	c.send(&discovery.DeltaDiscoveryRequest{TypeUrl: r.GetTypeUrl(), ResponseNonce: r.GetNonce()})
	c.answerClusters()
}

func (c *envoyClient) takeClusters(r *discovery.DeltaDiscoveryResponse) {
	endpoints := &discovery.DeltaDiscoveryRequest{TypeUrl: envoy.LoadAssignmentType}
	for _, a := range r.GetResources() {
		if !bytes.Contains(a.GetResource().GetValue(), []byte("BlackHole")) {
			c.clusters[a.GetName()] = false
			endpoints.ResourceNamesSubscribe = append(endpoints.ResourceNamesSubscribe, a.GetName())
		}
	}
	for _, name := range r.GetRemovedResources() {
		delete(c.clusters, name)
		delete(c.endpoints, name)
		endpoints.ResourceNamesUnsubscribe = append(endpoints.ResourceNamesUnsubscribe, name)
	}
	if len(endpoints.ResourceNamesSubscribe)+len(endpoints.ResourceNamesUnsubscribe) > 0 {
		c.send(endpoints)
	}
	c.waiting = append(c.waiting, r.GetNonce())
	c.answerClusters()
}

// answerClusters answers responses with clusters when all their clusters have endpoints.
func (c *envoyClient) answerClusters() {
	for _, warm := range c.clusters {
		if !warm {
			return
		}
	}
	for _, nonce := range c.waiting {
		c.send(&discovery.DeltaDiscoveryRequest{TypeUrl: envoy.ClusterType, ResponseNonce: nonce})
	}
	c.waiting = c.waiting[:0]
}

// await returns when all clients have the resources of a command.
func (e *envoys) await(c envoysCommand) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, client := range e.list {
		for !client.has(c) {
			e.changed.Wait()
		}
	}
}

func (c *envoyClient) has(want envoysCommand) bool {
	if _, there := c.clusters[want.Absent]; there {
		return false
	}
	if want.Present != "" && (!c.clusters[want.Present] || !bytes.Contains(c.routes, []byte(want.Present))) {
		return false
	}
	return want.Address == "" || bytes.Contains(c.endpoints[want.Present], []byte(want.Address))
}
