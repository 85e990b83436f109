// SPDX-License-Identifier: Apache-2.0

package memory_test

import (
	"fmt"
	"testing"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/memory"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// filled returns a registry of n services with one endpoint each, and one with n
// endpoints.
func filled(b *testing.B, n int) *memory.Registry {
	b.Helper()
	r := memory.New(memory.Options{})
	for i := range n {
		h := hostname(i)
		must(b, r.SetService(service(h, "ns", registry.ClientSideLB)))
		must(b, r.AddEndpoint(h, "ns", endpoint(address(i))))
	}
	must(b, r.SetService(service("big.example.com", "ns", registry.ClientSideLB)))
	endpoints := make([]*registry.Endpoint, n)
	for i := range endpoints {
		endpoints[i] = endpoint(address(i))
	}
	must(b, r.SetEndpoints("big.example.com", "ns", endpoints))
	return r
}

func address(i int) string { return fmt.Sprintf("10.%d.%d.%d", i>>16&255, i>>8&255, i&255) }

func sizes(b *testing.B, run func(b *testing.B, n int)) {
	b.Helper()
	for _, n := range []int{1000, 10000} {
		b.Run(fmt.Sprintf("n=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			run(b, n)
		})
	}
}

// BenchmarkChangeEndpoint moves one of n endpoints of a service.
func BenchmarkChangeEndpoint(b *testing.B) {
	sizes(b, func(b *testing.B, n int) {
		b.Helper()
		r := filled(b, n)
		one, two := endpoint(address(n/2)), endpoint("11.0.0.1")
		for b.Loop() {
			must(b, r.ChangeEndpoints("big.example.com", "ns", []xdsupdate.EndpointChange{{Old: one, New: two}}))
			one, two = two, one
		}
	})
}

// BenchmarkSetEndpointsOfOne replaces the only endpoint of one of n services.
func BenchmarkSetEndpointsOfOne(b *testing.B) {
	sizes(b, func(b *testing.B, n int) {
		b.Helper()
		r := filled(b, n)
		lists := [2][]*registry.Endpoint{{endpoint("11.0.0.1")}, {endpoint("11.0.0.2")}}
		for i := 0; b.Loop(); i++ {
			must(b, r.SetEndpoints(hostname(n/2), "ns", lists[i%2]))
		}
	})
}

// BenchmarkSetEndpointsUnchanged sets the n existing endpoints again, as a host that polls does.
func BenchmarkSetEndpointsUnchanged(b *testing.B) {
	sizes(b, func(b *testing.B, n int) {
		b.Helper()
		r := filled(b, n)
		endpoints := make([]*registry.Endpoint, n)
		for i := range endpoints {
			endpoints[i] = endpoint(address(i))
		}
		for b.Loop() {
			must(b, r.SetEndpoints("big.example.com", "ns", endpoints))
		}
	})
}

// BenchmarkSetService changes one of n services and notifies a handler.
func BenchmarkSetService(b *testing.B) {
	sizes(b, func(b *testing.B, n int) {
		b.Helper()
		r := filled(b, n)
		r.AppendServiceHandler(func(_, _ *registry.Service, _ registry.Event) {})
		states := [2]*registry.Service{
			service(hostname(n/2), "ns", registry.DNSLB), service(hostname(n/2), "ns", registry.ClientSideLB),
		}
		for i := 0; b.Loop(); i++ {
			must(b, r.SetService(states[i%2]))
		}
	})
}

// BenchmarkReplace sets n newly allocated services with three endpoints each. One endpoint has
// changed, as in a host that lists a catalogue.
func BenchmarkReplace(b *testing.B) {
	sizes(b, func(b *testing.B, n int) {
		b.Helper()
		r := memory.New(memory.Options{})
		lists := [2][]memory.Definition{}
		for i := range 2 * n {
			d := definition(hostname(i%n), 0, address(3*(i%n)), address(3*(i%n)+1), address(3*(i%n)+2))
			lists[i/n] = append(lists[i/n], d)
		}
		lists[1][n/2].Endpoints[1] = endpoint("11.0.0.1")
		for i := 0; b.Loop(); i++ {
			must(b, r.Replace(lists[i%2]))
		}
	})
}

// BenchmarkServices lists n unchanged services.
func BenchmarkServices(b *testing.B) {
	sizes(b, func(b *testing.B, n int) {
		b.Helper()
		r := filled(b, n)
		for b.Loop() {
			if len(r.Services()) != n+1 {
				b.Fatal("services are missing")
			}
		}
	})
}

// BenchmarkProxyInstances finds the instances of one proxy.
func BenchmarkProxyInstances(b *testing.B) {
	sizes(b, func(b *testing.B, n int) {
		b.Helper()
		r := filled(b, n)
		p := &registry.Proxy{Namespace: "ns", IPAddresses: []string{address(n / 2)}}
		for b.Loop() {
			if len(r.GetProxyServiceInstances(p)) != 2 {
				b.Fatal("instances are missing")
			}
		}
	})
}
