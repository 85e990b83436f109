// SPDX-License-Identifier: Apache-2.0

package serviceentry_test

import (
	"fmt"
	"net/netip"
	"testing"

	"go.uber.org/atomic"

	"github.com/pilotkit/pilotkit/registry"
)

// BenchmarkReads asks a registry with n ServiceEntries. Every question has its
// limit behind it: the load of a shared slice, a look into a map of host names,
// and the parsing of an address with a look into a map of addresses.
func BenchmarkReads(b *testing.B) {
	for _, n := range loads {
		b.Run(sizeName(n), func(b *testing.B) {
			store := newStore()
			fill(b, store, standardEntries(n))
			p := newPlantOn(store, true)
			limit := newReadLimit(p.registry.Services())
			benchmarkServices(b, p, limit, n)
			benchmarkGetService(b, p, limit, n)
			benchmarkProxies(b, p, limit, n)
		})
	}
}

type readLimit struct {
	all    atomic.Pointer[[]*registry.Service]
	byHost map[registry.Hostname]*registry.Service
	byIP   map[netip.Addr]*registry.Service
}

func newReadLimit(services []*registry.Service) *readLimit {
	l := &readLimit{byHost: map[registry.Hostname]*registry.Service{}, byIP: map[netip.Addr]*registry.Service{}}
	for i, s := range services {
		l.byHost[s.Hostname] = s
		for e := range 5 {
			l.byIP[netip.MustParseAddr(ipOf(20, 5*i+e))] = s
		}
	}
	l.all.Store(&services)
	return l
}

func benchmarkServices(b *testing.B, p *plant, limit *readLimit, n int) {
	b.Helper()
	measure(b, "services", func(b *testing.B, _ int) {
		if got := len(p.registry.Services()); got != n {
			b.Fatal(got)
		}
	})
	measure(b, "services-limit", func(b *testing.B, _ int) {
		if got := len(*limit.all.Load()); got != n {
			b.Fatal(got)
		}
	})
	// The first question after a change pays for the slice.
	c := newChanges(n, otherPort)
	measure(b, "services-after-change", func(b *testing.B, i int) {
		p.update(b, c.at(i))
		if got := len(p.registry.Services()); got != n {
			b.Fatal(got)
		}
	})
	c.undo(b, p)
}

func benchmarkGetService(b *testing.B, p *plant, limit *readLimit, n int) {
	b.Helper()
	hosts := make([]registry.Hostname, n)
	for i := range hosts {
		hosts[i] = registry.Hostname(fmt.Sprintf("svc-%d.example.com", i))
	}
	measure(b, "getservice", func(b *testing.B, i int) {
		if p.registry.GetService(hosts[i*stride%n]) == nil {
			b.Fatal("not found")
		}
	})
	measure(b, "getservice-limit", func(b *testing.B, i int) {
		if limit.byHost[hosts[i*stride%n]] == nil {
			b.Fatal("not found")
		}
	})
}

func benchmarkProxies(b *testing.B, p *plant, limit *readLimit, n int) {
	b.Helper()
	proxies := make([]*registry.Proxy, n)
	for i := range proxies {
		proxies[i] = &registry.Proxy{Namespace: fmt.Sprintf("ns-%02d", i%100), IPAddresses: []string{ipOf(20, 5*i)}}
	}
	measure(b, "proxyinstances", func(b *testing.B, i int) {
		if got := len(p.registry.GetProxyServiceInstances(proxies[i*stride%n])); got != 2 {
			b.Fatal(got)
		}
	})
	measure(b, "proxylabels", func(b *testing.B, i int) {
		if p.registry.GetProxyWorkloadLabels(proxies[i*stride%n]) == nil {
			b.Fatal("not found")
		}
	})
	measure(b, "proxy-limit", func(b *testing.B, i int) {
		address, err := netip.ParseAddr(proxies[i*stride%n].IPAddresses[0])
		if err != nil || limit.byIP[address] == nil {
			b.Fatal("not found")
		}
	})
}
