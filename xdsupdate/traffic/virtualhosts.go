// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"cmp"
	"fmt"

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
