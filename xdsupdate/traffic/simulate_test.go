// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"fmt"
	"strings"
	"testing"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/encoding/protojson"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/internal/test/histories"
	"github.com/pilotkit/pilotkit/internal/test/routesim"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/route"
)

// TestSimulatedSidecars: what Envoys do with requests by our routes is what the
// VirtualServices say.
func TestSimulatedSidecars(t *testing.T) {
	outcomes := map[string]int{}
	for _, seed := range histories.Seeds(t, 400) {
		s := newSimulation(seed)
		mesh := s.mesh()
		s.sidecars(mesh)
		plane := s.stage(t)
		for _, who := range []routesim.Proxy{
			{Namespace: "shop", Labels: registry.Labels{"app": "web"}}, {Namespace: "billing", Labels: registry.Labels{"app": "job"}}, {Namespace: "shop"},
		} {
			configs, router := plane.routeConfigs(clientOf("sidecar", who), portNames("")...), plane.router(route.Workload, who)
			for range 60 {
				r := s.request()
				c := configs[fmt.Sprint(r.Port)]
				want, served := mesh.Outbound(who, r)
				if served != (len(c.GetVirtualHosts()) > 0) {
					t.Fatalf("mesh %d, proxy %+v: route configuration of port %d: %v\n%s", seed, who, r.Port, c, s.describe())
				}
				if !served {
					continue
				}
				got := routesim.Envoy(c, r)
				if got.String() != want.String() {
					t.Fatalf("mesh %d, proxy %+v, request %+v:\n got %s\nwant %s\nservices %s\n%s", seed, who, r, got, want, s.describe(), protojson.Format(c))
				}
				checkRouter(t, router, r, want, s.describe)
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
		plane.close()
	}
	t.Log(outcomes)
}

// TestSimulatedGateways: what gateways do with requests by our routes is what the
// Gateways and VirtualServices say.
func TestSimulatedGateways(t *testing.T) {
	outcomes := map[string]int{}
	for _, seed := range histories.Seeds(t, 600) {
		s := newSimulation(seed + 1_000_000)
		mesh := s.mesh()
		s.gateways(mesh)
		plane := s.stage(t)
		who := routesim.Proxy{Namespace: pick(s.Rand, simNamespaces), Labels: registry.Labels{"app": "edge"}}
		configs, router := plane.routeConfigs(clientOf("router", who), portNames("http.")...), plane.router(route.Gateway, who)
		for range 100 {
			r := s.request()
			if s.chance(70) {
				r.Authority = pick(s.Rand, []string{"api.example.com", "a.b.example.com", "x.b.example.com:80", "Ghost.example.net", "cart.shop.svc.cluster.local"})
			}
			want, served := mesh.Router(who, r)
			c := configs[fmt.Sprint("http.", r.Port)]
			if served != (len(c.GetVirtualHosts()) > 0) {
				t.Fatalf("mesh %d: route configuration of port %d: %v\n%s", seed, r.Port, c, s.describe())
			}
			if !served {
				continue
			}
			if got := routesim.Envoy(c, r); got.String() != want.String() {
				t.Fatalf("mesh %d, proxy %+v, request %+v:\n got %s\nwant %s\n%s\n%s", seed, who, r, got, want, s.describe(), protojson.Format(c))
			}
			dotless := r
			dotless.Authority = strings.Replace(r.Authority, ".local.", ".local", 1)
			undotted, _ := mesh.Router(who, dotless)
			checkRouter(t, router, r, undotted, s.describe)
			outcomes[fmt.Sprintf("status %d", want.Status)]++
		}
		plane.close()
	}
	t.Log(outcomes)
}

// TestSimulatedCalls: what each of the gRPC clients does with calls by our routes is
// what the VirtualServices say, and none refuses them.
func TestSimulatedCalls(t *testing.T) {
	// How a VirtualService is expressed that is about no calls.
	failsAll := routesim.Outcome{Fault: "fails with Unimplemented"}.String()
	outcomes := map[string]int{}
	for _, seed := range histories.Seeds(t, 400) {
		s := newSimulation(seed + 2_000_000)
		for _, c := range s.configs { // gRPC clients do not look at these.
			for _, r := range c.Spec.(*networking.VirtualService).GetHttp() {
				for _, m := range r.GetMatch() {
					m.Authority, m.Scheme = nil, nil
				}
			}
		}
		mesh := s.mesh()
		plane := s.stage(t)
		who := routesim.Proxy{Namespace: pick(s.Rand, simNamespaces), Labels: registry.Labels{"app": "web"}}
		n := clientOf("grpc", who)
		listeners, routes := plane.ask(n, envoy.ListenerType, s.names("%s:%d")...), plane.routeConfigs(n, s.names("outbound|%[2]d||%[1]s")...)
		for _, svc := range s.services {
			for _, port := range svc.Ports {
				if port.Protocol == registry.ProtocolTCP || len(svc.Attributes.ExportTo) > 0 && svc.Attributes.Namespace != who.Namespace {
					continue
				}
				name := fmt.Sprintf("%s:%d", svc.Hostname, port.Number)
				l, c := listeners.resources[name], routes[envoy.ClusterName(port.Number, svc.Hostname)]
				if l == nil || c == nil {
					t.Fatalf("mesh %d: listener %v, routes %v", seed, l, c)
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
		plane.close()
	}
	t.Log(outcomes)
}

// clientOf returns the client that a simulated one is.
func clientOf(kind string, p routesim.Proxy) *core.Node {
	var labels []string
	for key, value := range p.Labels {
		labels = append(labels, key+"="+value)
	}
	return in(kind, p.Namespace, labels...)
}

// portNames returns the ports of meshes behind a prefix.
func portNames(prefix string) []string {
	var out []string
	for _, port := range simPorts {
		out = append(out, fmt.Sprint(prefix, port))
	}
	return out
}

// names returns a name for each host and port.
func (s *simulation) names(format string) []string {
	var out []string
	for _, svc := range s.services {
		for _, port := range simPorts {
			out = append(out, fmt.Sprintf(format, svc.Hostname, port))
		}
	}
	return out
}
