// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"fmt"
	"testing"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

const benchServices = 10_000

func benchHost(i int) registry.Hostname {
	return registry.Hostname(fmt.Sprintf("s%05d.example.com", i))
}

// benchRule is the rule of a service, with a subset and a limit.
func benchRule(i, limit int) configstore.Config {
	return configstore.Config{
		Meta: configstore.Meta{GroupVersionKind: istio.DestinationRule, Namespace: "shop", Name: fmt.Sprintf("s%05d", i)},
		Spec: &networking.DestinationRule{
			Host: string(benchHost(i)),
			TrafficPolicy: &networking.TrafficPolicy{ConnectionPool: &networking.ConnectionPoolSettings{
				Tcp: &networking.ConnectionPoolSettings_TCPSettings{MaxConnections: int32(limit)},
			}},
			Subsets: []*networking.Subset{{Name: "v1", Labels: map[string]string{"version": "v1"}}},
		},
	}
}

func benchEndpoint(i, generation int) *registry.Endpoint {
	e := newEndpoint([]string{"version=v1"})
	e.Addresses, e.EndpointPort = []string{fmt.Sprintf("10.%d.%d.%d", i/60_000, i/250%250, i%250)}, uint32(1000+generation%2)
	return e
}

// benchMesh is a mesh of 10,000 services with a rule and an endpoint each, and
// sidecars of as many namespaces, each of which has everything.
func benchMesh(b *testing.B, views int) (*mesh, []*xdstest.Client) {
	b.Helper()
	m := startMesh(b, traffic.Options{})
	for i := range benchServices {
		m.must(m.registry.SetService(&registry.Service{
			Hostname: benchHost(i), DefaultAddress: registry.UnspecifiedAddress, CreationTime: time.Unix(1, 0),
			Ports:      []*registry.Port{{Name: "grpc", Number: 80, Protocol: registry.ProtocolHTTP}},
			Attributes: registry.ServiceAttributes{Name: string(benchHost(i)), Namespace: "shop"},
		}))
		m.must(m.registry.SetEndpoints(benchHost(i), "shop", []*registry.Endpoint{benchEndpoint(i, 0)}))
		_, err := m.store.Create(benchRule(i, 1))
		m.must(err)
	}
	m.store.Drain()
	m.applied()
	var clients []*xdstest.Client
	for i := range views {
		conn, err := grpc.NewClient(m.address, grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(256<<20)))
		m.must(err)
		b.Cleanup(func() { _ = conn.Close() })
		c := xdstest.NewClient(conn, xdstest.ClientOptions{
			Delta: true, NoHistory: true, Node: &core.Node{Id: fmt.Sprintf("sidecar~10.9.%d.%d~app.ns%d~ns%d.svc.cluster.local", i/250, i%250, i, i)},
		})
		b.Cleanup(c.Close)
		m.must(c.Connect(m.ctx))
		for _, typeURL := range []string{envoy.ClusterType, envoy.LoadAssignmentType} {
			m.must(c.Subscribe(typeURL))
			m.must(c.Await(m.ctx, func(s xdstest.State) bool { return len(s.Resources(typeURL)) > 2*benchServices }))
		}
		clients = append(clients, c)
	}
	return m, clients
}

// BenchmarkChange: one subset endpoint, and one rule, change among 10,000 services
// with a rule each, until all clients have it. The limit is what has to be encoded
// for one client.
func BenchmarkChange(b *testing.B) {
	for _, views := range []int{1, 10} {
		b.Run(fmt.Sprintf("views=%d", views), func(b *testing.B) {
			m, _ := benchMesh(b, views)
			b.Run("endpoint", func(b *testing.B) {
				b.ReportAllocs()
				for i := 0; b.Loop(); i++ {
					m.must(m.registry.ChangeEndpoints(benchHost(7), "shop", []xdsupdate.EndpointChange{
						{Old: benchEndpoint(7, i), New: benchEndpoint(7, i+1)},
					}))
					m.applied()
				}
				m.must(m.registry.SetEndpoints(benchHost(7), "shop", []*registry.Endpoint{benchEndpoint(7, 0)}))
				m.applied()
			})
			b.Run("rule", func(b *testing.B) {
				b.ReportAllocs()
				for i := 0; b.Loop(); i++ {
					_, err := configstore.Upsert(m.store, benchRule(7, 2+i%2))
					m.must(err)
					m.store.Drain()
					m.applied()
				}
			})
		})
	}
	b.Run("limit", func(b *testing.B) {
		m, clients := benchMesh(b, 1)
		held := clients[0].State()
		for _, typeURL := range []string{envoy.LoadAssignmentType, envoy.ClusterType} {
			var changed []proto.Message
			for _, subset := range []string{"", "v1"} {
				message, err := held.Resources(typeURL)["outbound|80|"+subset+"|"+string(benchHost(7))].Message()
				m.must(err)
				changed = append(changed, message)
			}
			b.Run(typeURL[len("type.googleapis.com/envoy.config."):], func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					for _, message := range changed {
						if _, err := proto.Marshal(message); err != nil {
							b.Fatal(err)
						}
					}
				}
			})
		}
	})
}
