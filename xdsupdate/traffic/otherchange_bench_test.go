// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"fmt"
	"testing"

	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
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
// another one has n hosts, and builds and encodes what the router is sent.
func BenchmarkOtherChangeOnGateway(b *testing.B) {
	for _, n := range []int{1250, 2500, 5000, 10_000} {
		b.Run(fmt.Sprintf("hosts=%d", n), func(b *testing.B) {
			configs, other := besideBig(n)
			st := newState(newIndex(configs, newSettings(Options{})), cartWorld())
			p := edge()
			moment := 0
			b.ReportAllocs()
			for b.Loop() {
				moment++
				spec := proto.CloneOf(other)
				spec.Http[0].Match[0].Uri.MatchType = &networking.StringMatch_Prefix{Prefix: fmt.Sprint("/", moment)}
				key := configs[2].Key()
				before, _ := st.objects.Get(key)
				c := *configs[2]
				c.Spec = spec
				d := &difference{before: st, targets: &targets{}, objects: []objectChange{{key, before, newObject(&c, st.settings)}}}
				d.after = st.next(st.withAll(d.objects), st.world, d)
				if len(newConcerned(d).changes().Names) == 0 {
					b.Fatal("nothing is concerned")
				}
				st = d.after
				rc, err := st.resource(p, envoy.RouteType, "http.80")
				if err != nil {
					b.Fatal(err)
				}
				if _, err := proto.Marshal(rc); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/host")
		})
	}
}
