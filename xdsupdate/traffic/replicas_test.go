// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"github.com/google/go-cmp/cmp"

	"github.com/pilotkit/pilotkit/configstore/file"
	storememory "github.com/pilotkit/pilotkit/configstore/memory"
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

// replica is the resources of clients of a process that has read a directory.
func replica(t *testing.T, files []string, pieces int) map[string]string {
	t.Helper()
	dir := t.TempDir()
	s := &scene{t: t, store: storememory.NewController(storememory.Make(lenientSchemas()))}
	s.policies = traffic.New(s.store)
	s.wire(ads.Options{Providers: []ads.Provider{s.policies}})
	source := file.New(dir, s.store, file.Options{})
	for i, text := range files {
		s.must(os.WriteFile(filepath.Join(dir, fmt.Sprintf("%x.yaml", sha256.Sum256([]byte(text)))), []byte(text), 0o600))
		if i%pieces == pieces-1 || i == len(files)-1 {
			s.must(source.Reload())
		}
	}
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

// TestReplicasOfADirectory: what clients are sent depends on the files alone, and not on when and
// in which order a process has read them: replicas agree, and a restart changes nothing.
func TestReplicasOfADirectory(t *testing.T) {
	var files []string
	for i := range 6 {
		files = append(files, strings.Split(rivals(i), "---\n")...)
	}
	want := replica(t, files, len(files)) // as after a start
	if len(want) < 12 {
		t.Fatalf("only %d resources", len(want))
	}
	for seed := range uint64(6) {
		random := rand.New(rand.NewPCG(seed, 1))
		random.Shuffle(len(files), func(i, j int) { files[i], files[j] = files[j], files[i] })
		got := replica(t, files, 1+random.IntN(4))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("seed %d: another process has other resources (-want +got):\n%s", seed, diff)
		}
	}
}
