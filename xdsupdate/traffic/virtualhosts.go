// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"

	"github.com/pilotkit/pilotkit/internal/xdsbuild"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/hostname"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/mesh"
)

// virtualHosts collects the virtual hosts of a route configuration. Clients reject duplicate
// domains and names, so the first virtual host gets them.
type virtualHosts struct {
	st    *state
	proxy *proxy
	// egress is the listener whose aliases are included. It is nil if there are none.
	egress *mesh.Egress
	// addresses maps address domains to the host name of their service.
	addresses map[string]registry.Hostname
	// services are the host names of services. They take precedence over short names.
	services map[registry.Hostname]struct{}
	names    map[string]struct{}
	domains  map[string]struct{}
	hosts    []*routev3.VirtualHost
	leftOut  []error
}

// newVirtualHosts returns an empty collection. Services lists the services with a port in the route
// configuration, sorted by host name.
func (st *state) newVirtualHosts(p *proxy, e *mesh.Egress, services []*mesh.Service) *virtualHosts {
	b := &virtualHosts{
		st: st, proxy: p, egress: e,
		addresses: make(map[string]registry.Hostname), services: make(map[registry.Hostname]struct{}),
		names: make(map[string]struct{}), domains: make(map[string]struct{}),
	}
	for _, s := range services {
		b.services[hostname.Lower(s.Host)] = struct{}{}
		for _, a := range addressesOf(s, p) {
			if _, taken := b.addresses[a]; !taken {
				b.addresses[a] = hostname.Lower(s.Host)
			}
		}
	}
	return b
}

// has reports whether there is a virtual host for a port of a host.
func (b *virtualHosts) has(host registry.Hostname, port uint32) bool {
	_, ok := b.names[envoy.ListenerName(port, hostname.Lower(host))]
	return ok
}

// addService adds a virtual host for a port of a service, unless the service is left out.
func (b *virtualHosts) addService(svc *mesh.Service, port uint32, form domainForm, rules *builtRules) {
	if b.proxy.leavesService(svc) == ads.Absent {
		return
	}
	host := hostname.Lower(svc.Host)
	names, short := serviceNames(host, b.proxy.Namespace, b.st.settings.Domain)
	for _, alias := range b.st.aliasesSeen(b.egress, host) {
		full, shorter := serviceNames(alias, b.proxy.Namespace, b.st.settings.Domain)
		names, short = append(names, full...), append(short, shorter...)
	}
	for _, s := range short {
		if _, taken := b.services[registry.Hostname(s)]; !taken {
			names = append(names, s)
		}
	}
	if svc.Headless() {
		names = withPods(names)
	}
	for _, a := range addressesOf(svc, b.proxy) {
		if b.addresses[a] == host {
			names = append(names, a)
		}
	}
	b.add(host, port, form.domainsOf(names, port), rules)
}

// addHosts adds a virtual host for hosts without a service. Hosts that clients would reject are
// left out.
func (b *virtualHosts) addHosts(hosts []registry.Hostname, port portForm, rules *builtRules) {
	var first registry.Hostname
	var names []string
	for _, h := range hosts {
		name := domainOf(h)
		if err := checkVirtualHost(&routev3.VirtualHost{Name: name, Domains: []string{name}}); err != nil {
			b.leftOut = append(b.leftOut, err)
			continue
		}
		first, names = cmp.Or(first, h), append(names, name)
	}
	if len(names) > 0 {
		b.add(first, port.number, port.form.domainsOf(names, port.number), rules)
	}
}

func (b *virtualHosts) add(host registry.Hostname, port uint32, domains []string, rules *builtRules) {
	name := envoy.ListenerName(port, host)
	if _, taken := b.names[name]; taken {
		return
	}
	free := make([]string, 0, len(domains))
	for _, d := range domains {
		if _, taken := b.domains[d]; !taken {
			b.domains[d] = struct{}{}
			free = append(free, d)
		}
	}
	if len(free) == 0 {
		return
	}
	b.names[name] = struct{}{}
	out, err := rules.virtualHost(name, free, b.st.settings.countsAttempts(b.proxy))
	if err != nil {
		b.leftOut = append(b.leftOut, err)
		return
	}
	b.hosts = append(b.hosts, out)
	b.st.made.noteHost(name, rules)
}

// checkVirtualHost returns an error if clients would reject a virtual host. It ignores routes,
// which are validated when they are built.
func checkVirtualHost(h *routev3.VirtualHost) error {
	if err := xdsbuild.Check(envoy.ForEnvoy, &routev3.VirtualHost{Name: h.GetName(), Domains: h.GetDomains()}); err != nil {
		return fmt.Errorf("host %.253q is left out: %w", h.GetName(), err)
	}
	return nil
}

// countsAttempts reports whether requests have a header with the attempt count.
func (s *settings) countsAttempts(p *proxy) bool {
	return !s.configOf(p).GetProxyHeaders().GetAttemptCount().GetDisabled().GetValue()
}

// aliasesSeen returns the names of the aliases of a host that a listener sees.
func (st *state) aliasesSeen(e *mesh.Egress, host registry.Hostname) []registry.Hostname {
	if e == nil {
		return nil
	}
	return mesh.AliasNames(st.world, host, func(alias, target registry.Hostname) bool {
		svc := e.Service(alias)
		return svc != nil && mesh.TargetOf(svc.Of[0]) == target
	})
}

// domainForm says whether the domains of a virtual host include ports.
type domainForm uint8

const (
	// bareDomains have no ports, because Envoys strip the port of requests.
	bareDomains domainForm = iota
	// bothDomains exist with and without the port.
	bothDomains
	// portDomains always have the port.
	portDomains
)

// domainsOf returns the domains of some names. IPv6 addresses must already be in brackets.
func (f domainForm) domainsOf(names []string, port uint32) []string {
	if f == bareDomains {
		return names
	}
	suffix := ":" + strconv.FormatUint(uint64(port), 10)
	var out []string
	for _, n := range names {
		if f == bothDomains {
			out = append(out, n)
		}
		out = append(out, n+suffix)
	}
	return out
}

// serviceNames returns the names that requests of a proxy can use for a service: its host name with
// and without a trailing dot, and the short names that the search list of the proxy's resolver
// completes.
func serviceNames(host registry.Hostname, namespace, domain string) (names, short []string) {
	full := string(hostname.Lower(host))
	names = []string{full, full + "."}
	name, ok := strings.CutSuffix(full, ".svc."+domain)
	if !ok || name == "" {
		return names, nil
	}
	if label, rest, _ := strings.Cut(name, "."); rest == namespace {
		short = append(short, label)
	}
	return names, append(short, name, name+".svc")
}

// domainOf returns the domain of a host in the form that hostname.Canonical returns.
func domainOf(host registry.Hostname) string {
	if strings.Contains(string(host), ":") {
		if addr, err := netip.ParseAddr(string(host)); err == nil {
			return bracketed(addr)
		}
	}
	return string(host)
}

// withPods returns the names of a headless service, and the wildcards that cover the names of its
// pods, "POD.NAME".
func withPods(names []string) []string {
	out := slices.Clone(names)
	for _, n := range names {
		out = append(out, "*."+n)
	}
	return out
}

// addressesOf returns the addresses of a service that a proxy can call, as domains. Invalid and
// unspecified addresses, and ranges, are left out.
func addressesOf(svc *mesh.Service, p *proxy) []string {
	var out []string
	for _, s := range svc.Of {
		if len(s.ClusterVIPs) == 0 && !p.allocated {
			out = appendAddress(out, s.DefaultAddress) // The usual case.
			continue
		}
		for _, a := range s.AddressesFor(p.registryProxy()) {
			out = appendAddress(out, a)
		}
	}
	return out
}

func appendAddress(out []string, a string) []string {
	if a == "" || a == registry.UnspecifiedAddress {
		return out // The usual case, which need not be parsed.
	}
	addr, err := netip.ParseAddr(a)
	if addr = addr.Unmap(); err != nil || addr.IsUnspecified() || addr.Zone() != "" {
		return out
	}
	return append(out, bracketed(addr))
}

// bracketed returns an address as it occurs in the authority of a request. IPv6 addresses are in
// brackets.
func bracketed(addr netip.Addr) string {
	if addr.Is6() {
		return "[" + addr.String() + "]"
	}
	return addr.String()
}
