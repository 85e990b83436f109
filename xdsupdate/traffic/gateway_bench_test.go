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

// manyHosts is a gateway with n HTTPS servers beside the plain one, and n
// VirtualServices of a host each, which lead to n services.
func manyHosts(n int) (configList, *population) {
	var configs configList
	servers := []*networking.Server{serverOf(80, "HTTP", "", "*")}
	services := make([]*registry.Service, 0, n)
	for i := range n {
		host := fmt.Sprintf("h%d.example.com", i)
		s := serverOf(443, "HTTPS", fmt.Sprint("c", i), host)
		s.Port.Name = fmt.Sprint("https-", i)
		servers = append(servers, s)
		name := fmt.Sprintf("s%d", i)
		services = append(services, testService("shop", registry.Hostname(name+".shop.svc.cluster.local"), 80, 81))
		v := toCart("/a", []string{"ingress/edge"}, host)
		v.Http[0].Route[0].Destination.Host = name
		configs.add(istio.VirtualService, "shop/"+name, v)
	}
	configs.add(istio.Gateway, "ingress/edge", gatewayOf(servers...))
	return configs, populate(services...)
}

// BenchmarkGateway builds what a router is sent after a push, beside the encoding
// of it, which is the least that a change of it costs.
func BenchmarkGateway(b *testing.B) {
	for _, n := range []int{100, 10_000} {
		configs, services := manyHosts(n)
		s := stage(b, traffic.Options{}, configs, services)
		view := s.view(edge())
		for _, tc := range []struct{ name, typeURL, resource string }{
			{"routes", envoy.RouteType, "http.80"},
			{"routes of one server", envoy.RouteType, "https.443.https-7.edge.ingress"},
			{"listener", envoy.ListenerType, "0.0.0.0_443"},
		} {
			b.Run(fmt.Sprintf("hosts=%d/%s", n, tc.name), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					s.build(view, tc.typeURL, tc.resource)
				}
			})
			b.Run(fmt.Sprintf("hosts=%d/%s encoded", n, tc.name), func(b *testing.B) {
				m := s.build(view, tc.typeURL, tc.resource)
				b.ReportAllocs()
				for b.Loop() {
					if _, err := (proto.MarshalOptions{Deterministic: true}).Marshal(m); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
		s.close()
	}
}
