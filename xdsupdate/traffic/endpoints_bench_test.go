// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"fmt"
	"testing"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

// BenchmarkEndpointOfLargeService changes one of 10,000 endpoints of a service, while
// routers of 10 addresses are connected, that have clusters and no assignments: what the
// change costs beside encoding. "rule" changes the DestinationRule of the service, of which
// they are sent the cluster.
func BenchmarkEndpointOfLargeService(b *testing.B) {
	for _, n := range []int{100, 10_000} {
		b.Run(fmt.Sprintf("endpoints=%d", n), func(b *testing.B) {
			m := startMesh(b, traffic.Options{})
			host := benchHost(0)
			m.must(m.registry.SetService(&registry.Service{
				Hostname: host, DefaultAddress: registry.UnspecifiedAddress, CreationTime: time.Unix(1, 0),
				Ports:      []*registry.Port{{Name: "grpc", Number: 80, Protocol: registry.ProtocolHTTP}},
				Attributes: registry.ServiceAttributes{Name: string(host), Namespace: "shop"},
			}))
			endpoints := make([]*registry.Endpoint, n)
			for i := range endpoints {
				endpoints[i] = benchEndpoint(i, 0)
			}
			m.must(m.registry.SetEndpoints(host, "shop", endpoints))
			_, err := m.store.Create(configstore.Config{
				Meta: configstore.Meta{GroupVersionKind: istio.Gateway, Namespace: "shop", Name: "edge"},
				Spec: &networking.Gateway{Servers: []*networking.Server{{
					Port: &networking.Port{Number: 80, Name: "http", Protocol: "HTTP"}, Hosts: []string{"*"},
				}}},
			})
			m.must(err)
			m.store.Drain()
			m.applied()
			for i := range 10 {
				conn, err := grpc.NewClient(m.address, grpc.WithTransportCredentials(insecure.NewCredentials()))
				m.must(err)
				b.Cleanup(func() { _ = conn.Close() })
				c := xdstest.NewClient(conn, xdstest.ClientOptions{
					Delta: true, NoHistory: true, Node: &core.Node{Id: fmt.Sprintf("router~10.99.9.%d~edge.shop~shop.svc.cluster.local", i)},
				})
				b.Cleanup(c.Close)
				m.must(c.Connect(m.ctx))
				m.must(c.Subscribe(envoy.ClusterType))
				m.must(c.Await(m.ctx, func(s xdstest.State) bool { return len(s.Resources(envoy.ClusterType)) > 0 }))
			}
			b.Run("endpoint", func(b *testing.B) {
				b.ReportAllocs()
				for i := 0; b.Loop(); i++ {
					m.must(m.registry.ChangeEndpoints(host, "shop", []xdsupdate.EndpointChange{
						{Old: benchEndpoint(7, i), New: benchEndpoint(7, i+1)},
					}))
					m.applied()
				}
				m.must(m.registry.SetEndpoints(host, "shop", endpoints))
				m.applied()
			})
			b.Run("rule", func(b *testing.B) {
				b.ReportAllocs()
				for i := 0; b.Loop(); i++ {
					_, err := configstore.Upsert(m.store, benchRule(0, 2+i%2))
					m.must(err)
					m.store.Drain()
					m.applied()
				}
			})
		})
	}
}
