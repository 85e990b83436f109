// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"

	"github.com/pilotkit/pilotkit/aggregate"
	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/checkpoint"
	"github.com/pilotkit/pilotkit/configstore/file"
	"github.com/pilotkit/pilotkit/configstore/mcp"
	storememory "github.com/pilotkit/pilotkit/configstore/memory"
	"github.com/pilotkit/pilotkit/internal/test/testserver"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/bridge"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

// rivals are objects of which the oldest counts, with a number in place of %d.
func rivals(i int) string {
	return fmt.Sprintf(`
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: cart%[1]d, namespace: ns%[2]d}
spec:
  hosts: [cart.example.com, cart%[1]d.example.com]
  ports: [{number: 80, name: http, protocol: HTTP}]
  resolution: STATIC
  endpoints: [{address: 10.0.0.%[1]d, labels: {version: v1}}]
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: cart%[1]d, namespace: ns%[2]d}
spec:
  hosts: [cart.example.com, a.example.com]
  gateways: [mesh, infra/edge%[1]d, infra/edge0]
  http: [{route: [{destination: {host: cart%[1]d.example.com, subset: v1}}]}]
---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: cart%[1]d, namespace: ns%[2]d}
spec:
  host: cart.example.com
  trafficPolicy: {connectionPool: {tcp: {maxConnections: 1%[1]d}}}
  subsets: [{name: v1, labels: {version: v1}, trafficPolicy: {connectionPool: {tcp: {maxConnections: 2%[1]d}}}}]
---
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: edge%[1]d, namespace: infra}
spec:
  selector: {app: edge}
  servers:
  - {hosts: ["*.example.com"], port: {number: 80, name: http, protocol: HTTP}}
  - {hosts: [a.example.com], port: {number: 9000, name: tcp%[1]d, protocol: TCP}}
`, i, i%2)
}

// replica is the resources of clients of a process. Fill gives its server what there is, before it
// serves.
func replica(t *testing.T, fill func(s *scene)) map[string]string {
	t.Helper()
	s := &scene{t: t, store: storememory.NewController(storememory.Make(lenientSchemas()))}
	fill(s)
	s.store.Drain()
	s.serve()
	s.applied()
	out := make(map[string]string)
	for _, n := range []*core.Node{in("sidecar", "ns0"), in("router", "infra", "app=edge")} {
		c := s.connect(s.numbered(n))
		for _, typeURL := range []string{envoy.ClusterType, envoy.ListenerType} {
			s.must(c.Subscribe(typeURL))
			s.answered(c)
		}
		s.must(c.Subscribe(envoy.RouteType, map[string]string{"sidecar": "80", "router": "http.80"}[strings.Split(n.GetId(), "~")[0]]))
		s.answered(c)
		s.must(c.Subscribe(envoy.LoadAssignmentType, "outbound|80||cart.example.com"))
		s.answered(c)
		maps.Copy(out, contents(n, c.State()))
	}
	return out
}

// read stores the objects of a directory of files, which appear in pieces, and calls then after each.
func (s *scene) read(files []string, pieces int, then ...func()) {
	s.t.Helper()
	dir := s.t.TempDir()
	source := file.New(dir, s.store, file.Options{})
	for i, text := range files {
		s.must(os.WriteFile(filepath.Join(dir, fmt.Sprintf("%x.yaml", sha256.Sum256([]byte(text)))), []byte(text), 0o600))
		if i%pieces == pieces-1 || i == len(files)-1 {
			s.must(source.Reload())
			for _, f := range then {
				f()
			}
		}
	}
	s.store.Drain()
}

// ofDirectory fills a replica from a directory.
func ofDirectory(files []string, pieces int) func(*scene) {
	return func(s *scene) {
		s.policies = traffic.New(s.store)
		s.wire(ads.Options{Providers: []ads.Provider{s.policies}})
		s.read(files, pieces)
	}
}

// ofCheckpoint fills a replica from a directory behind a checkpoint. First says whether the server
// starts with the file alone, and synced whether the directory is read after that.
func ofCheckpoint(path string, first, synced bool, files []string, pieces int) func(*scene) {
	return func(s *scene) {
		ready := !first
		s.store.RegisterHasSyncedHandler(func() bool { return ready })
		cache := checkpoint.New(s.store, path)
		s.configs, s.policies = cache, traffic.New(cache)
		s.wire(ads.Options{Providers: []ads.Provider{s.policies}})
		cache.Drain()
		if synced {
			s.read(files, pieces)
			ready = true
		}
		cache.Drain()
		if cache.Status().Stale == synced {
			s.t.Errorf("the checkpoint is stale: %t", synced)
		}
		s.must(cache.Save())
	}
}

// ofMCP fills a replica from an MCP server that reads a directory.
func ofMCP(files []string, pieces int) func(*scene) {
	return func(s *scene) {
		s.policies = traffic.New(s.store)
		s.wire(ads.Options{Providers: []ads.Provider{s.policies}})
		origin := &scene{t: s.t, store: storememory.NewController(storememory.Make(lenientSchemas()))}
		exporter := mcp.NewServer(origin.store, mcp.ServerOptions{ADS: ads.Options{Debounce: xdsupdate.Debounce{After: -1}}})
		origin.store.Drain()
		server := grpc.NewServer()
		exporter.Register(server)
		conn, _ := testserver.ServeMemory(s.t, server, exporter.Run)
		source := mcp.NewSource(conn, s.store)
		stop := make(chan struct{})
		var running sync.WaitGroup
		running.Go(func() { source.Run(stop) })
		s.t.Cleanup(func() {
			close(stop)
			running.Wait()
		})
		s.must(configstore.WaitForSync(s.t.Context(), source))
		origin.read(files, pieces, func() {
			origin.store.Drain()
			s.must(exporter.ADS().WaitApplied(s.t.Context(), nil))
		})
	}
}

// catalogueOf returns a record of a catalogue without times. The first six are of one host.
func catalogueOf(i int) bridge.Record {
	svc := testService(fmt.Sprintf("ns%d", i%3), registry.Hostname(fmt.Sprintf("cart%d.example.com", i/3)), 80)
	if i < 6 {
		svc.Hostname = "cart.example.com"
		svc.Attributes.Namespace = fmt.Sprintf("other%d", i)
	}
	return bridge.Record{Service: svc, Endpoints: []*registry.Endpoint{
		{Addresses: []string{fmt.Sprintf("10.1.0.%d", i)}, EndpointPort: 80, ServicePort: 80, ServicePortName: "http-80"},
	}}
}

// listed is a catalogue of its first records.
type listed []bridge.Record

// List implements bridge.Catalogue.
func (l *listed) List(context.Context) (bridge.Listing, error) {
	return bridge.Listing{Records: slices.Clone(*l)}, nil
}

// ofBridge fills a replica from a catalogue that grows in pieces.
func ofBridge(records []bridge.Record, pieces int) func(*scene) {
	return func(s *scene) {
		s.policies = traffic.New(s.store)
		s.wire(ads.Options{Providers: []ads.Provider{s.policies}})
		var catalogue listed
		var source *bridge.Bridge
		s.services.(*aggregate.Controller).AddRegistry(func(updater xdsupdate.XDSUpdater) registry.Instance {
			source = bridge.New(&catalogue, bridge.Options{Cluster: "east", Updater: updater})
			return source
		})
		for n := 0; n < len(records); {
			n = min(len(records), n+pieces)
			catalogue = records[:n]
			s.must(source.Sync(s.t.Context()))
		}
	}
}

// contents returns the versions and bytes of the resources of a client.
func contents(n *core.Node, state xdstest.State) map[string]string {
	out := make(map[string]string)
	for _, typeURL := range []string{envoy.ClusterType, envoy.ListenerType, envoy.RouteType, envoy.LoadAssignmentType} {
		for name, r := range state.Resources(typeURL) {
			out[n.GetId()+" "+typeURL+" "+name] = r.Version + " " + string(r.Any.GetValue())
		}
	}
	return out
}

// TestReplicas: what clients are sent depends on the content of a source that knows no times alone,
// and not on when and in which order a process has received it: replicas agree, and a restart
// changes nothing.
func TestReplicas(t *testing.T) {
	var files []string
	for i := range 6 {
		files = append(files, strings.Split(rivals(i), "---\n")...)
	}
	records := make([]bridge.Record, 18)
	for i := range records {
		records[i] = catalogueOf(i)
	}
	whole := func(*rand.Rand) int { return 1000 } // as after a start
	some := func(random *rand.Rand) int { return 1 + random.IntN(4) }
	path := filepath.Join(t.TempDir(), "checkpoint")
	sources := map[string]func(random *rand.Rand, pieces func(*rand.Rand) int) func(*scene){
		"a directory": func(random *rand.Rand, pieces func(*rand.Rand) int) func(*scene) {
			return ofDirectory(shuffled(random, files), pieces(random))
		},
		"a checkpoint before its source": func(random *rand.Rand, pieces func(*rand.Rand) int) func(*scene) {
			replica(t, ofCheckpoint(path, false, true, shuffled(random, files), pieces(random)))
			return ofCheckpoint(path, true, false, nil, 1)
		},
		"a checkpoint and its source": func(random *rand.Rand, pieces func(*rand.Rand) int) func(*scene) {
			replica(t, ofCheckpoint(path, false, true, shuffled(random, files), pieces(random)))
			return ofCheckpoint(path, true, true, shuffled(random, files), pieces(random))
		},
		"an MCP server": func(random *rand.Rand, pieces func(*rand.Rand) int) func(*scene) {
			return ofMCP(shuffled(random, files), pieces(random))
		},
		"a catalogue": func(random *rand.Rand, pieces func(*rand.Rand) int) func(*scene) {
			return ofBridge(shuffled(random, records), pieces(random))
		},
	}
	want := map[bool]map[string]string{}
	for name, source := range sources {
		fromFiles := name != "a catalogue"
		if want[fromFiles] == nil {
			want[fromFiles] = replica(t, source(rand.New(rand.NewPCG(0, 0)), whole))
			if len(want[fromFiles]) < 12 {
				t.Fatalf("%s: only %d resources", name, len(want[fromFiles]))
			}
		}
		for seed := range uint64(4) {
			got := replica(t, source(rand.New(rand.NewPCG(seed, 1)), some))
			if diff := cmp.Diff(want[fromFiles], got); diff != "" {
				t.Errorf("%s, seed %d: another process has other resources (-want +got):\n%s", name, seed, diff)
			}
		}
	}
}

func shuffled[T any](random *rand.Rand, list []T) []T {
	out := slices.Clone(list)
	random.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out
}
