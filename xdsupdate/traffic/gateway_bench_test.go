// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"fmt"
	"testing"

	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// manyHosts is a gateway with n HTTPS servers beside the plain one, and n
// VirtualServices of a host each, which lead to n services.
func manyHosts(n int) (configList, world) {
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
	return configs, newNamedWorld(services...)
}

// namedWorld finds services by their names at once.
type namedWorld struct {
	*listWorld
	byName map[registry.Hostname][]*registry.Service
}

func newNamedWorld(services ...*registry.Service) *namedWorld {
	w := &namedWorld{listWorld: newListWorld(services...), byName: make(map[registry.Hostname][]*registry.Service)}
	for _, s := range services {
		w.byName[lower(s.Hostname)] = append(w.byName[lower(s.Hostname)], s)
	}
	return w
}

func (w *namedWorld) named(host registry.Hostname) []*registry.Service { return w.byName[lower(host)] }

// BenchmarkGateway builds what a router is sent after a push, beside the encoding
// of it, which is the least that a change of it costs.
func BenchmarkGateway(b *testing.B) {
	for _, n := range []int{100, 10_000} {
		configs, w := manyHosts(n)
		x := newIndex(configs, newSettings(Options{}))
		p := edge()
		fresh := func() *state {
			st := newState(x, w)
			st.scopeOf(p)
			return st
		}
		for _, tc := range []struct {
			name  string
			build func(st *state) proto.Message
		}{
			{"routes", func(st *state) proto.Message { return st.routesSent(p, "http.80") }},
			{"routes of one server", func(st *state) proto.Message { return st.routesSent(p, "https.443.https-7.edge.ingress") }},
			{"listener", func(st *state) proto.Message { return st.listenerSent(p, "0.0.0.0_443") }},
		} {
			b.Run(fmt.Sprintf("hosts=%d/%s", n, tc.name), func(b *testing.B) {
				st := fresh()
				b.ReportAllocs()
				for b.Loop() {
					if m := tc.build(st); !m.ProtoReflect().IsValid() {
						b.Fatal("nothing was built")
					}
				}
			})
			b.Run(fmt.Sprintf("hosts=%d/%s encoded", n, tc.name), func(b *testing.B) {
				m := tc.build(fresh())
				b.ReportAllocs()
				for b.Loop() {
					if _, err := (proto.MarshalOptions{Deterministic: true}).Marshal(m); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
		b.Run(fmt.Sprintf("hosts=%d/names", n), func(b *testing.B) {
			st := fresh()
			b.ReportAllocs()
			for b.Loop() {
				if len(st.names(p, envoy.ListenerType)) != 2 {
					b.Fatal("no listeners")
				}
			}
		})
	}
}
