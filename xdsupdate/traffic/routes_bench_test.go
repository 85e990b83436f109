// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"fmt"
	"testing"

	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/registry"
)

// benchState is a state of services with a VirtualService each.
func benchState(n int) *state {
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
	st := newState(newIndex(configs, newSettings(Options{})), newListWorld(services...))
	st.scopeOf(&proxy{namespace: "shop"})
	return st
}

// BenchmarkRoutes builds the route configuration of a sidecar, which has all services
// of a port, beside its encoding, and that of a gRPC client, which has one.
func BenchmarkRoutes(b *testing.B) {
	st := benchState(10_000)
	b.Run("sidecar", func(b *testing.B) {
		b.ReportAllocs()
		p := &proxy{namespace: "shop"}
		for b.Loop() {
			st.routesSent(p, "80")
		}
	})
	b.Run("encoding", func(b *testing.B) {
		b.ReportAllocs()
		c := st.routesSent(&proxy{namespace: "shop"}, "80")
		for b.Loop() {
			if _, err := (proto.MarshalOptions{Deterministic: true}).Marshal(c); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("gRPC", func(b *testing.B) {
		b.ReportAllocs()
		p := &proxy{role: grpcClient, namespace: "shop"}
		for b.Loop() {
			st.routesSent(p, "outbound|80||s00042.shop.svc.cluster.local")
		}
	})
}
