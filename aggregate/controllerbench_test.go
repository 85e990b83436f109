// SPDX-License-Identifier: Apache-2.0

package aggregate_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/pilotkit/pilotkit/aggregate"
	"github.com/pilotkit/pilotkit/internal/test/cputime"
	"github.com/pilotkit/pilotkit/registry"
)

// stub is a registry that costs nothing: a prepared list and a map.
type stub struct {
	registry.Controller
	cluster  registry.ClusterID
	services []*registry.Service
	byHost   map[registry.Hostname]*registry.Service
	targets  []*registry.ServiceInstance
}

func (s *stub) Provider() registry.ProviderID { return registry.Kubernetes }

func (s *stub) Cluster() registry.ClusterID { return s.cluster }

func (s *stub) Services() []*registry.Service { return s.services }

func (s *stub) GetService(h registry.Hostname) *registry.Service { return s.byHost[h] }

func (s *stub) InstancesByPort(*registry.Service, uint32) []*registry.ServiceInstance { return nil }

func (s *stub) GetProxyServiceInstances(*registry.Proxy) []*registry.ServiceInstance {
	return s.targets
}

func (s *stub) GetProxyWorkloadLabels(*registry.Proxy) registry.Labels { return nil }

func (s *stub) NetworkGateways() []registry.NetworkGateway { return nil }

func (s *stub) AppendNetworkGatewayHandler(func()) {}

func (s *stub) AppendServiceHandler(registry.ServiceHandler) {}

func (s *stub) AppendWorkloadHandler(func(*registry.WorkloadInstance, registry.Event)) {}

func benchService(i int, cluster registry.ClusterID) *registry.Service {
	return service(fmt.Sprintf("host-%06d.example.com", i), "ns",
		vip(cluster, fmt.Sprintf("10.0.%d.%d", i/256, i%256)), accounts("sa-"+string(cluster)))
}

// benchRegistries returns registries that have the same n services each.
func benchRegistries(registries, n int) (*aggregate.Controller, []*stub) {
	c := aggregate.NewController(aggregate.Options{})
	var stubs []*stub
	for r := range registries {
		s := &stub{cluster: registry.ClusterID(fmt.Sprint("cluster-", r)), byHost: map[registry.Hostname]*registry.Service{}}
		for i := range n {
			svc := benchService(i, s.cluster)
			s.services = append(s.services, svc)
			s.byHost[svc.Hostname] = svc
		}
		s.targets = []*registry.ServiceInstance{{Service: s.services[0]}, {Service: s.services[1]}}
		stubs = append(stubs, s)
		c.AddRegistry(given(s))
	}
	return c, stubs
}

func registrySizes(b *testing.B, f func(b *testing.B, c *aggregate.Controller, stubs []*stub, n int)) {
	b.Helper()
	for _, n := range []int{1000, 10000} {
		for _, registries := range []int{1, 3, 10} {
			c, stubs := benchRegistries(registries, n)
			b.Run(fmt.Sprintf("n=%d/registries=%d", n, registries), func(b *testing.B) {
				b.ReportAllocs()
				c.Services()
				f(b, c, stubs, n)
			})
		}
	}
}

func BenchmarkControllerServices(b *testing.B) {
	registrySizes(b, func(b *testing.B, c *aggregate.Controller, _ []*stub, n int) {
		b.Helper()
		for b.Loop() {
			if len(c.Services()) != n {
				b.Fatal("services are missing")
			}
		}
	})
}

// BenchmarkControllerServicesChanged lists after one service of one registry has
// changed.
func BenchmarkControllerServicesChanged(b *testing.B) {
	registrySizes(b, func(b *testing.B, c *aggregate.Controller, stubs []*stub, n int) {
		b.Helper()
		last := stubs[len(stubs)-1]
		versions := [2]*registry.Service{benchService(n/2, last.cluster), benchService(n/2, last.cluster)}
		c.Services()
		i := 0
		for b.Loop() {
			b.StopTimer()
			i++
			last.services = slices.Clone(last.services)
			last.services[n/2] = versions[i%2]
			b.StartTimer()
			c.Services()
		}
	})
}

func BenchmarkControllerServicesChangedLimit(b *testing.B) {
	for _, n := range []int{1000, 10000} {
		list := make([]*registry.Service, n)
		b.Run(fmt.Sprintf("n=%d", n), func(b *testing.B) {
			for b.Loop() {
				list = slices.Clone(list)
			}
		})
	}
}

// BenchmarkControllerServicesFirst merges everything.
func BenchmarkControllerServicesFirst(b *testing.B) {
	registrySizes(b, func(b *testing.B, _ *aggregate.Controller, stubs []*stub, n int) {
		b.Helper()
		start := cputime.Used()
		for b.Loop() {
			c := aggregate.NewController(aggregate.Options{})
			for _, s := range stubs {
				c.AddRegistry(given(s))
			}
			if len(c.Services()) != n {
				b.Fatal("services are missing")
			}
		}
		b.ReportMetric(float64((cputime.Used()-start).Nanoseconds())/float64(b.N), "cpu-ns/op")
	})
}

func BenchmarkControllerGetService(b *testing.B) {
	registrySizes(b, func(b *testing.B, c *aggregate.Controller, stubs []*stub, n int) {
		b.Helper()
		benchLookup(b, stubs[0], n, c.GetService)
	})
}

func BenchmarkControllerGetServiceLimit(b *testing.B) {
	for _, n := range []int{1000, 10000} {
		_, stubs := benchRegistries(1, n)
		b.Run(fmt.Sprintf("n=%d", n), func(b *testing.B) { benchLookup(b, stubs[0], n, stubs[0].GetService) })
	}
}

func benchLookup(b *testing.B, s *stub, n int, get func(registry.Hostname) *registry.Service) {
	b.Helper()
	hosts := make([]registry.Hostname, n)
	for i := range hosts {
		hosts[i] = s.services[i].Hostname
	}
	i := 0
	for b.Loop() {
		i = (i + benchStride) % n
		if get(hosts[i]) == nil {
			b.Fatal("no service")
		}
	}
}

func BenchmarkControllerProxyInstances(b *testing.B) {
	for name, cluster := range map[string]registry.ClusterID{"known": "cluster-0", "unknown": ""} {
		b.Run("cluster="+name, func(b *testing.B) {
			registrySizes(b, func(b *testing.B, c *aggregate.Controller, stubs []*stub, _ int) {
				b.Helper()
				for _, s := range stubs[1:] {
					s.targets = nil
				}
				proxy := &registry.Proxy{IPAddresses: []string{"10.0.0.1"}, ClusterID: cluster}
				for b.Loop() {
					if len(c.GetProxyServiceInstances(proxy)) != 2 {
						b.Fatal("instances are missing")
					}
				}
			})
		})
	}
}

// changes are the sizes at which the cost of one change is measured. It has to be
// the same for all.
func changeSizes(b *testing.B, f func(b *testing.B, n int)) {
	b.Helper()
	for _, n := range []int{1000, 10_000, 50_000} {
		b.Run(fmt.Sprintf("n=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			f(b, n)
		})
	}
}

// benchChanges changes one service after the other, each time asking read for
// the result.
func benchChanges(
	b *testing.B, n int, read func(c *aggregate.Controller, host registry.Hostname) *registry.Service,
	others ...registry.Instance,
) {
	b.Helper()
	r := newRegistry(registry.Kubernetes, "cluster-0")
	var versions [2][]*registry.Service
	for i := range n {
		for v := range versions {
			s := benchService(i, "cluster-0")
			s.MeshExternal = v > 0
			versions[v] = append(versions[v], s)
		}
		if err := r.SetService(versions[0][i]); err != nil {
			b.Fatal(err)
		}
	}
	c := aggregate.NewController()
	for _, r := range append(others, r) {
		c.AddRegistry(given(r))
	}
	c.Services()
	i, version := 0, make([]byte, n)
	start := cputime.Used()
	for b.Loop() {
		i = (i + benchStride) % n
		version[i] ^= 1
		want := versions[version[i]][i]
		if err := r.SetService(want); err != nil {
			b.Fatal(err)
		}
		if got := read(c, want.Hostname); got.MeshExternal != want.MeshExternal {
			b.Fatal("the change is not there")
		}
	}
	b.ReportMetric(float64((cputime.Used()-start).Nanoseconds())/float64(b.N), "cpu-ns/op")
}

// BenchmarkControllerChange changes a service of a registry and asks the aggregate
// for it.
func BenchmarkControllerChange(b *testing.B) {
	changeSizes(b, func(b *testing.B, n int) {
		b.Helper()
		benchChanges(b, n, (*aggregate.Controller).GetService)
	})
}

// BenchmarkControllerChangeOfTwo is BenchmarkControllerChange with another registry of
// one service, so that the services of both have to be merged.
func BenchmarkControllerChangeOfTwo(b *testing.B) {
	changeSizes(b, func(b *testing.B, n int) {
		b.Helper()
		other := newRegistry(registry.External, "cluster-0")
		if err := other.SetService(service("other.example.com", "ns")); err != nil {
			b.Fatal(err)
		}
		benchChanges(b, n, (*aggregate.Controller).GetService, other)
	})
}

// BenchmarkControllerChangeListed asks for the list of all services as well, which
// is made after the change.
func BenchmarkControllerChangeListed(b *testing.B) {
	changeSizes(b, func(b *testing.B, n int) {
		b.Helper()
		benchChanges(b, n, func(c *aggregate.Controller, host registry.Hostname) *registry.Service {
			if len(c.Services()) != n {
				b.Fatal("services are missing")
			}
			return c.GetService(host)
		})
	})
}

// BenchmarkControllerChangeLimit puts the service into a map and looks it up.
func BenchmarkControllerChangeLimit(b *testing.B) {
	changeSizes(b, func(b *testing.B, n int) {
		b.Helper()
		services := make([]*registry.Service, n)
		m := make(map[registry.Hostname]*registry.Service, n)
		for i := range services {
			services[i] = benchService(i, "cluster-0")
			m[services[i].Hostname] = services[i]
		}
		i := 0
		start := cputime.Used()
		for b.Loop() {
			i = (i + benchStride) % n
			m[services[i].Hostname] = services[i]
			if m[services[i].Hostname] == nil {
				b.Fatal("no service")
			}
		}
		b.ReportMetric(float64((cputime.Used()-start).Nanoseconds())/float64(b.N), "cpu-ns/op")
	})
}

// BenchmarkControllerServicesFirstLimit puts the services of all registries into a
// map by their host names, which is what merging cannot do without.
func BenchmarkControllerServicesFirstLimit(b *testing.B) {
	registrySizes(b, func(b *testing.B, _ *aggregate.Controller, stubs []*stub, n int) {
		b.Helper()
		start := cputime.Used()
		for b.Loop() {
			m := map[registry.Hostname]int{}
			for _, s := range stubs {
				for _, svc := range s.services {
					m[svc.Hostname]++
				}
			}
			if len(m) != n {
				b.Fatal("services are missing")
			}
		}
		b.ReportMetric(float64((cputime.Used()-start).Nanoseconds())/float64(b.N), "cpu-ns/op")
	})
}

// BenchmarkControllerServicesFirstMade makes the merged services, and nothing else: the
// host names are not looked at, because the registries have the same in the same order.
func BenchmarkControllerServicesFirstMade(b *testing.B) {
	registrySizes(b, func(b *testing.B, _ *aggregate.Controller, stubs []*stub, n int) {
		b.Helper()
		start := cputime.Used()
		for b.Loop() {
			merged := make([]*registry.Service, n)
			for i := range merged {
				merged[i] = mergeInOrder(stubs, i)
			}
		}
		b.ReportMetric(float64((cputime.Used()-start).Nanoseconds())/float64(b.N), "cpu-ns/op")
	})
}

func mergeInOrder(stubs []*stub, i int) *registry.Service {
	out := *stubs[0].services[i]
	out.ClusterVIPs = make(map[registry.ClusterID][]string, len(stubs))
	out.Attributes.ClusterExternalAddresses = make(map[registry.ClusterID][]string, len(stubs))
	out.ServiceAccounts = make([]string, 0, len(stubs))
	for _, s := range stubs {
		out.ClusterVIPs[s.cluster] = s.services[i].ClusterVIPs[s.cluster]
		out.Attributes.ClusterExternalAddresses[s.cluster] = s.services[i].Attributes.ClusterExternalAddresses[s.cluster]
		out.ServiceAccounts = append(out.ServiceAccounts, s.services[i].ServiceAccounts...)
	}
	return &out
}
