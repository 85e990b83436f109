// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"errors"
	"fmt"
	"testing"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/encoding/protojson"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/internal/routesim"
	"github.com/pilotkit/pilotkit/registry"
)

// TestSimulatedSidecars: what Envoys do with requests by our routes is what the
// VirtualServices say.
func TestSimulatedSidecars(t *testing.T) {
	meshes := uint64(600)
	if testing.Short() {
		meshes = 60
	}
	outcomes := map[string]int{}
	for seed := range meshes {
		s := newSimulation(seed)
		mesh := s.mesh()
		s.sidecars(mesh)
		st := newState(newIndex(s.configs, newSettings(Options{})), newListWorld(s.services...))
		for _, p := range []*proxy{
			{namespace: "shop", labels: registry.Labels{"app": "web"}}, {namespace: "billing", labels: registry.Labels{"app": "job"}}, {namespace: "shop"},
		} {
			who := routesim.Proxy{Namespace: p.namespace, Labels: p.labels}
			configs := map[uint32]*routev3.RouteConfiguration{}
			for _, port := range simPorts {
				configs[port] = st.routesSent(p, fmt.Sprint(port))
				if err := accepted(p, configs[port]); err != nil {
					t.Fatal(err)
				}
			}
			for range 60 {
				r := s.request()
				c := configs[r.Port]
				want, served := mesh.Outbound(who, r)
				if served != (c != nil) {
					t.Fatalf("mesh %d, proxy %+v: route configuration of port %d: %v\n%s", seed, who, r.Port, c, s.describe())
				}
				if !served {
					continue
				}
				got := routesim.Envoy(c, r)
				if got.String() != want.String() {
					t.Fatalf("mesh %d, proxy %+v, request %+v:\n got %s\nwant %s\nservices %s\n%s", seed, who, r, got, want, s.describe(), protojson.Format(c))
				}
				kind := fmt.Sprintf("status %d", want.Status)
				if want.Targets["PassthroughCluster"] > 0 {
					kind = "unknown host"
				}
				if n := len(s.configs); n > 0 && mesh.Decides(who, r) {
					kind += " by a VirtualService"
				}
				outcomes[kind]++
			}
		}
	}
	t.Log(outcomes)
}

// TestSimulatedGateways: what gateways do with requests by our routes is what the
// Gateways and VirtualServices say.
func TestSimulatedGateways(t *testing.T) {
	meshes := uint64(1000)
	if testing.Short() {
		meshes = 80
	}
	outcomes := map[string]int{}
	for seed := range meshes {
		s := newSimulation(seed + 1_000_000)
		mesh := s.mesh()
		s.gateways(mesh)
		st := newState(newIndex(s.configs, newSettings(Options{})), newListWorld(s.services...))
		p := &proxy{role: router, namespace: pick(s.Rand, simNamespaces), labels: registry.Labels{"app": "edge"}}
		who := routesim.Proxy{Namespace: p.namespace, Labels: p.labels}
		configs := map[uint32]*routev3.RouteConfiguration{}
		for _, port := range simPorts {
			configs[port] = st.routesSent(p, fmt.Sprint("http.", port))
			if err := configs[port].ValidateAll(); err != nil {
				t.Fatal(err)
			}
		}
		for range 100 {
			r := s.request()
			if s.chance(70) {
				r.Authority = pick(s.Rand, []string{"api.example.com", "a.b.example.com", "x.b.example.com:80", "Ghost.example.net", "cart.shop.svc.cluster.local"})
			}
			want, served := mesh.Router(who, r)
			c := configs[r.Port]
			if served != (c != nil) {
				t.Fatalf("mesh %d: route configuration of port %d: %v\n%s", seed, r.Port, c, s.describe())
			}
			if !served {
				continue
			}
			if got := routesim.Envoy(c, r); got.String() != want.String() {
				t.Fatalf("mesh %d, proxy %+v, request %+v:\n got %s\nwant %s\n%s\n%s", seed, who, r, got, want, s.describe(), protojson.Format(c))
			}
			outcomes[fmt.Sprintf("status %d", want.Status)]++
		}
	}
	t.Log(outcomes)
}

// TestSimulatedCalls: what each of the gRPC clients does with calls by our routes is
// what the VirtualServices say, and none refuses them.
func TestSimulatedCalls(t *testing.T) {
	meshes := uint64(600)
	if testing.Short() {
		meshes = 60
	}
	// How a VirtualService is expressed that is about no calls.
	failsAll := routesim.Outcome{Fault: "fails with Unimplemented"}.String()
	outcomes := map[string]int{}
	for seed := range meshes {
		s := newSimulation(seed + 2_000_000)
		for _, c := range s.configs { // gRPC clients do not look at these.
			for _, r := range c.Spec.(*networking.VirtualService).GetHttp() {
				for _, m := range r.GetMatch() {
					m.Authority, m.Scheme = nil, nil
				}
			}
		}
		mesh := s.mesh()
		st := newState(newIndex(s.configs, newSettings(Options{})), newListWorld(s.services...))
		p := &proxy{role: grpcClient, namespace: pick(s.Rand, simNamespaces), labels: registry.Labels{"app": "web"}}
		who := routesim.Proxy{Namespace: p.namespace, Labels: p.labels}
		for _, svc := range st.scopeOf(p).sorted {
			for _, port := range svc.ports {
				if port.Protocol == registry.ProtocolTCP {
					continue
				}
				name := fmt.Sprintf("%s:%d", svc.host, port.Number)
				l := st.grpcListener(p, name)
				c := st.routesSent(p, fmt.Sprintf("outbound|%d||%s", port.Number, svc.host))
				if err := errors.Join(l.ValidateAll(), c.ValidateAll()); err != nil || l == nil || c == nil {
					t.Fatalf("mesh %d: listener %v, routes %v: %v", seed, l, c, err)
				}
				for range 10 {
					r := s.request()
					r.Port, r.Authority, r.Method, r.Query = port.Number, name, "POST", nil
					want, _ := mesh.Outbound(who, r)
					want = want.AsCall()
					for _, client := range []routesim.GRPCClient{routesim.Go, routesim.JS, routesim.Core} {
						got, err := client.Call(c, r)
						if err == nil && got.String() == failsAll && want.String() == routesim.NoRoute().String() {
							continue
						}
						if err != nil || got.String() != want.String() {
							t.Fatalf("mesh %d, client %d, proxy %+v, request %+v: %v\n got %s\nwant %s\n%s\n%s", seed, client, who, r, err, got, want, s.describe(), protojson.Format(c))
						}
					}
					outcomes[want.Fault]++
				}
			}
		}
	}
	t.Log(outcomes)
}
