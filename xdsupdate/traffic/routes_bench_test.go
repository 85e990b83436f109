// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"fmt"
	"testing"

	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
)

// benchScene has services with a VirtualService each.
func benchScene(b *testing.B, n int) *scene {
	b.Helper()
	var configs configList
	services := make([]*registry.Service, n)
	for i := range n {
		host := fmt.Sprintf("s%05d.shop.svc.cluster.local", i)
		services[i] = testService("shop", registry.Hostname(host), 80)
		configs.add(istio.VirtualService, fmt.Sprintf("shop/s%05d", i), &networking.VirtualService{
			Hosts: []string{host}, Http: []*networking.HTTPRoute{
				{
					Match: []*networking.HTTPMatchRequest{{Headers: map[string]*networking.StringMatch{"x": {MatchType: &networking.StringMatch_Exact{Exact: "1"}}}}},
					Route: []*networking.HTTPRouteDestination{{Destination: &networking.Destination{Host: host, Subset: "v2"}}},
				},
				{Route: []*networking.HTTPRouteDestination{{Destination: &networking.Destination{Host: host, Subset: "v1"}}}},
			},
		})
	}
	return stage(b, traffic.Options{}, configs, populate(services...))
}

// BenchmarkRoutes builds the route configuration of a sidecar, which has all services
// of a port, beside its encoding, and that of a gRPC client, which has one.
func BenchmarkRoutes(b *testing.B) {
	s := benchScene(b, 10_000)
	sidecar, grpc := s.view(in("sidecar", "shop")), s.view(in("grpc", "shop"))
	b.Run("sidecar", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			s.build(sidecar, envoy.RouteType, "80")
		}
	})
	b.Run("encoding", func(b *testing.B) {
		b.ReportAllocs()
		c := s.build(sidecar, envoy.RouteType, "80")
		for b.Loop() {
			if _, err := (proto.MarshalOptions{Deterministic: true}).Marshal(c); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("gRPC", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			s.build(grpc, envoy.RouteType, "outbound|80||s00042.shop.svc.cluster.local")
		}
	})
}
