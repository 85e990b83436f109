// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"fmt"
	"testing"

	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
)

// besideBig is a gateway on which one VirtualService has n hosts, and another one has one.
func besideBig(n int) (configList, *networking.VirtualService) {
	var configs configList
	configs.add(istio.Gateway, "ingress/a", gatewayOf(serverOf(80, "HTTP", "", "*")))
	hosts := make([]string, n)
	for i := range hosts {
		hosts[i] = fmt.Sprintf("h%d.example.com", i)
	}
	configs.add(istio.VirtualService, "shop/big", toCart("/a", []string{"ingress/a"}, hosts...))
	other := toCart("/a", []string{"ingress/a"}, "other.example.com")
	configs.add(istio.VirtualService, "shop/other", other)
	return configs, other
}

// BenchmarkOtherChangeOnGateway changes a VirtualService of one host, on a gateway on which
// another one has n hosts, and waits until the router has what follows.
func BenchmarkOtherChangeOnGateway(b *testing.B) {
	for _, n := range []int{1250, 2500, 5000, 10_000} {
		b.Run(fmt.Sprintf("hosts=%d", n), func(b *testing.B) {
			configs, other := besideBig(n)
			s := stage(b, traffic.Options{}, configs, cartPopulation())
			s.follow(edge(), envoy.RouteType, "http.80")
			moment := 0
			b.ReportAllocs()
			for b.Loop() {
				moment++
				c := *configs[2]
				spec := proto.CloneOf(other)
				spec.Http[0].Match[0].Uri.MatchType = &networking.StringMatch_Prefix{Prefix: fmt.Sprint("/", moment)}
				c.Spec = spec
				s.change(configList{&c})
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/host")
		})
	}
}
