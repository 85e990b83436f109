// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"fmt"
	"testing"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/internal/test/cputime"
	"github.com/pilotkit/pilotkit/registry"
	registrymemory "github.com/pilotkit/pilotkit/registry/memory"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

// seenByAll is the number of services that every namespace of BenchmarkNamespaces sees.
const seenByAll = 300

// namespaces is a mesh of 300 services with a VirtualService each. With own, each of n other
// namespaces has a service and a VirtualService that no other one sees.
func namespaces(n int, own bool) (configList, *population) {
	var configs configList
	services := populate()
	add := func(namespace string, i int, exportTo ...string) {
		host := fmt.Sprintf("s%d.%s.svc.cluster.local", i, namespace)
		svc := testService(namespace, registry.Hostname(host), 80)
		services.services = append(services.services, svc)
		for _, to := range exportTo {
			svc.Attributes.ExportTo = append(svc.Attributes.ExportTo, registry.Visibility(to))
		}
		spec := toCart("/a", nil, host)
		spec.ExportTo = exportTo
		configs.add(istio.VirtualService, fmt.Sprintf("%s/v%d", namespace, i), spec)
	}
	for i := range seenByAll {
		add("shop", i)
	}
	for i := range n {
		if own {
			add(fmt.Sprintf("ns%d", i), 0, ".")
		}
	}
	return configs, services
}

// BenchmarkNamespaces changes a VirtualService of one host, which all namespaces see or one, beside
// a proxy in each namespace, and waits until the proxies have what follows.
func BenchmarkNamespaces(b *testing.B) {
	for _, n := range []int{300, 2_000} {
		for _, own := range []bool{false, true} {
			b.Run(fmt.Sprintf("namespaces=%d/own=%t", n, own), func(b *testing.B) {
				m, rule := meshOfNamespaces(b, n, own)
				moment := 0
				for _, exportTo := range [][]string{{"*"}, {"ns7"}} {
					b.Run("exportTo="+exportTo[0], func(b *testing.B) {
						b.ReportAllocs()
						defer cputime.Report(b, "namespace", n)()
						for b.Loop() {
							moment++
							spec := proto.CloneOf(rule.Spec.(*networking.VirtualService))
							spec.ExportTo = exportTo
							spec.Http[0].Match[0].Uri.MatchType = &networking.StringMatch_Prefix{Prefix: fmt.Sprint("/", moment)}
							_, err := m.store.Update(configstore.Config{Meta: rule.Meta, Spec: spec})
							m.must(err)
							m.store.Drain()
							m.applied()
						}
					})
				}
			})
		}
	}
}

// meshOfNamespaces starts a mesh with a proxy in each of n namespaces, and returns one of the
// VirtualServices that all of them see.
func meshOfNamespaces(b *testing.B, n int, own bool) (*mesh, *configstore.Config) {
	b.Helper()
	m := startMesh(b, traffic.Options{})
	configs, services := namespaces(n, own)
	for _, svc := range services.services {
		m.must(m.registry.SetService(svc))
	}
	for _, c := range configs {
		_, err := m.store.Create(*c)
		m.must(err)
	}
	m.store.Drain()
	m.applied()
	m.connect(n, func(c *xdstest.Client) {
		m.must(c.Subscribe(envoy.RouteType, "80"))
		m.must(c.Await(m.ctx, func(s xdstest.State) bool { return s.Has(envoy.RouteType, "80") }))
	})
	return m, configs[7]
}

// BenchmarkPrivateServices changes the addresses of services that are exported to their own namespaces
// only, of one or of all of them in one push, beside a proxy in each namespace, and waits until the
// proxies have what follows.
func BenchmarkPrivateServices(b *testing.B) {
	const each = 10
	for _, n := range []int{50, 500} {
		m, services := meshOfPrivateServices(b, n, each)
		for _, changed := range []int{1, len(services)} {
			b.Run(fmt.Sprintf("namespaces=%d/changed=%d", n, changed), func(b *testing.B) {
				b.ReportAllocs()
				defer cputime.Report(b, "service", changed)()
				for i := 0; b.Loop(); i++ {
					for k := range changed {
						moved := *services[k].Service
						moved.DefaultAddress = fmt.Sprintf("10.77.0.%d", i%200)
						services[k].Service = &moved
					}
					if changed == 1 {
						m.must(m.registry.SetService(services[0].Service))
					} else {
						m.must(m.registry.Replace(services))
					}
					m.applied()
				}
			})
		}
	}
}

// meshOfPrivateServices starts a mesh of n namespaces, each with a proxy and with services that no other
// namespace sees.
func meshOfPrivateServices(b *testing.B, n, each int) (*mesh, []registrymemory.Definition) {
	b.Helper()
	m := startMesh(b, traffic.Options{})
	var services []registrymemory.Definition
	for i := range n {
		for k := range each {
			svc := testService(fmt.Sprintf("ns%d", i), registry.Hostname(fmt.Sprintf("s%d.ns%d.svc.cluster.local", k, i)), 80)
			svc.Attributes.ExportTo = []registry.Visibility{registry.VisibilityPrivate}
			services = append(services, registrymemory.Definition{Service: svc})
		}
	}
	m.must(m.registry.Replace(services))
	m.applied()
	m.connect(n, func(c *xdstest.Client) {
		m.must(c.Subscribe(envoy.ClusterType))
		m.must(c.Subscribe(envoy.RouteType, "80"))
		m.must(c.Await(m.ctx, func(s xdstest.State) bool {
			return len(s.Resources(envoy.ClusterType)) >= each && s.Has(envoy.RouteType, "80")
		}))
	})
	return m, services
}

// connect connects a proxy in each of n namespaces, and has each subscribe.
func (m *mesh) connect(n int, subscribe func(*xdstest.Client)) {
	m.t.Helper()
	conn, err := grpc.NewClient(m.address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	m.must(err)
	m.t.Cleanup(func() { _ = conn.Close() })
	for i := range n {
		client := &core.Node{Id: fmt.Sprintf("sidecar~10.9.%d.%d~app.ns%d~ns%d.svc.cluster.local", i/250, i%250, i, i)}
		c := xdstest.NewClient(conn, xdstest.ClientOptions{Node: client, Delta: true, NoHistory: true})
		m.t.Cleanup(c.Close)
		m.must(c.Connect(m.ctx))
		subscribe(c)
	}
}
