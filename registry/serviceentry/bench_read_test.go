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
	measure(b, "services", func(int) bool { return len(p.registry.Services()) == n })
	measure(b, "services-limit", func(int) bool { return len(*limit.all.Load()) == n })
	// The first question after a change pays for the slice.
	c := newChanges(n, otherPort)
	measure(b, "services-after-change", func(i int) bool { return p.update(c.at(i)) && len(p.registry.Services()) == n })
	c.undo(p)
}

func benchmarkGetService(b *testing.B, p *plant, limit *readLimit, n int) {
	b.Helper()
	hosts := make([]registry.Hostname, n)
	for i := range hosts {
		hosts[i] = registry.Hostname(fmt.Sprintf("svc-%d.example.com", i))
	}
	measure(b, "getservice", func(i int) bool { return p.registry.GetService(hosts[i*stride%n]) != nil })
	measure(b, "getservice-limit", func(i int) bool { return limit.byHost[hosts[i*stride%n]] != nil })
}

func benchmarkProxies(b *testing.B, p *plant, limit *readLimit, n int) {
	b.Helper()
	proxies := make([]*registry.Proxy, n)
	for i := range proxies {
		proxies[i] = &registry.Proxy{Namespace: fmt.Sprintf("ns-%02d", i%100), IPAddresses: []string{ipOf(20, 5*i)}}
	}
	measure(b, "proxyinstances", func(i int) bool {
		return len(p.registry.GetProxyServiceInstances(proxies[i*stride%n])) == 2
	})
	measure(b, "proxylabels", func(i int) bool {
		return p.registry.GetProxyWorkloadLabels(proxies[i*stride%n]) != nil
	})
	measure(b, "proxy-limit", func(i int) bool {
		address, err := netip.ParseAddr(proxies[i*stride%n].IPAddresses[0])
		return err == nil && limit.byIP[address] != nil
	})
}
