// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"maps"
	"slices"
	"sync"

	"github.com/pilotkit/pilotkit/internal/xdsbuild"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/hostname"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/objects"
)

// HTTP/2 clients reuse one connection for several hosts if its certificate is valid for all of them
// and they have the same address. The TLS servers of a port are filter chains with different
// routes, and the server name of a connection selects one of them. A request can therefore arrive
// at a filter chain that its host, as a server name, would not have selected. Such a request is
// answered with 421 (Misdirected Request), and browsers then open another connection for the host.
// This also applies if a wildcard of the chain covers the host, because the more specific name
// belongs to another chain.
//
// A chain serves the request if it has routes for exactly this host from a VirtualService that is
// bound to its Gateway as well, as in Istio, unless the host's own server has other requirements
// for client certificates. These cannot be bypassed by a connection for another name.
//
// In a route configuration, a virtual host with the hosts of other servers implements this. Hosts
// without any server are answered with 404 as elsewhere.

// anyHost covers all hosts.
const anyHost registry.Hostname = "*"

// mostForeignHosts is the maximum number of other servers' hosts in all route configurations of a
// listener. The number grows with the square of the number of servers. Beyond the limit, a route
// configuration answers all hosts except its own with 421.
const mostForeignHosts = 100_000

// chainNames are the server names of the filter chains of a listener. It is immutable.
type chainNames struct {
	// owners are the owners of the names. A chain for all names has the name "*".
	owners map[registry.Hostname]*nameOwner
	// sorted and set contain all names.
	sorted func() []registry.Hostname
	set    func() *hostname.Set
	// wildcards is set if some name is a wildcard.
	wildcards bool
	// anyForeign is set if every host without a chain is treated as the host of another chain.
	anyForeign bool
}

// nameOwner is the server of a filter chain, with the VirtualService of a chain of a TLS route.
type nameOwner struct {
	*gatewayServer
	of *objects.VirtualService
}

// newChainNames returns the names of a listener's chains as Envoy chooses them: of the chains that
// take all connections with their names. The first chain with a name owns the name. A chain that
// shares a name with an earlier chain is left out. AUTO_PASSTHROUGH servers are skipped, because
// their names are cluster names that no client uses as a host.
func (st *state) newChainNames(p *proxy, l *gatewayListener) *chainNames {
	n := &chainNames{owners: make(map[registry.Hostname]*nameOwner, len(l.servers))}
	configs := 0
	for _, s := range l.servers {
		if s.kind == terminatedHTTP {
			configs++
		}
		terminates := s.kind == terminatedHTTP || s.kind == terminatedTCP
		if s.kind != passthrough && (!terminates || !xdsbuild.HasCertificate(s.spec)) {
			continue
		}
		st.claimTLSRoutes(n, p, s)
		if names, ok := s.serverNames(); ok && (s.kind == terminatedHTTP || terminates && st.takesAll(p, s)) {
			n.claim(names, &nameOwner{s, nil})
		}
	}
	n.sorted = sync.OnceValue(func() []registry.Hostname { return slices.Sorted(maps.Keys(n.owners)) })
	n.set = sync.OnceValue(func() *hostname.Set { return hostname.NewSet(n.sorted()) })
	n.anyForeign = n.owners[anyHost] == nil && len(n.owners)*configs > mostForeignHosts
	return n
}

// claim assigns the names of a chain to its owner, unless one of them is taken.
func (n *chainNames) claim(names []string, by *nameOwner) {
	if len(names) == 0 {
		names = []string{string(anyHost)}
	}
	if slices.ContainsFunc(names, func(name string) bool { return n.owners[registry.Hostname(name)] != nil }) {
		return
	}
	for _, name := range names {
		n.owners[registry.Hostname(name)] = by
		n.wildcards = n.wildcards || registry.Hostname(name).IsWildcard()
	}
}

// absent reports whether a client rejects a name, because the object that it comes from is left out
// of the client's resource.
func (n *chainNames) absent(p *proxy, name registry.Hostname) bool {
	switch by := n.owners[name]; {
	case by == nil:
		return false
	case by.of != nil:
		return p.leaves(by.of.Config, by.of) == ads.Absent
	default:
		return p.leaves(by.gateway.Config, by.gateway) == ads.Absent
	}
}

// claimTLSRoutes claims the names of the TLS routes of a server.
func (st *state) claimTLSRoutes(n *chainNames, p *proxy, s *gatewayServer) {
	for _, v := range st.withTLSRoutes(p, s) {
		for _, r := range v.Spec.GetTls() {
			for _, m := range r.GetMatch() {
				if len(m.GetDestinationSubnets()) > 0 || len(r.GetRoute()) == 0 || !s.fits(p, v, m) {
					continue
				}
				if names, ok := s.namesOf(v, m); ok {
					n.claim(names, &nameOwner{s, v})
				}
			}
		}
	}
}

// takesAll reports whether a TCP route of a server takes all its connections.
func (st *state) takesAll(p *proxy, s *gatewayServer) bool {
	routes, _ := st.tcpRoutes(p, s)
	return len(routes) > 0 && len(routes[len(routes)-1].ranges) == 0
}

// allowed returns the hosts that a server may have routes for. It excludes hosts of other servers
// with other requirements for client certificates. A nil receiver, for listeners without TLS,
// allows all hosts.
func (n *chainNames) allowed(s *gatewayServer, hosts []registry.Hostname) []registry.Hostname {
	if n == nil {
		return hosts
	}
	return slices.DeleteFunc(hosts, func(h registry.Hostname) bool {
		name, ok := hostname.MostSpecific(n.owners, h)
		return ok && n.foreign(s.routes, name) && !n.owners[name].trusts(s)
	})
}

// foreign reports whether a name belongs to another chain than the route configuration's.
func (n *chainNames) foreign(routes string, name registry.Hostname) bool {
	return n.owners[name].routes != routes
}

// trusts reports whether a request for this server may use a connection to another one, because
// this server does not verify client certificates or because both verify them in the same way.
func (s *gatewayServer) trusts(other *gatewayServer) bool {
	return s.kind != terminatedHTTP || !xdsbuild.VerifiesClients(s.spec.GetTls()) || xdsbuild.SameClients(s.spec.GetTls(), other.spec.GetTls())
}

// missing returns additional hosts for the route configuration of servers, sorted: misdirected
// hosts belong to other chains, and unrouted hosts are the configuration's own hosts without routes
// that a misdirected wildcard would cover.
func (n *chainNames) missing(routes string, servers []*gatewayServer, routed func(registry.Hostname) bool) (misdirected, unrouted []registry.Hostname) {
	own := n.of(routes, servers)
	if len(own) == 0 {
		return nil, nil // Without a chain there are no requests.
	}
	for _, name := range n.foreignTo(routes, own) {
		if !routed(name) && !n.coveredByForeign(routes, name, routed) {
			misdirected = append(misdirected, name)
		}
	}
	for _, name := range own {
		if !routed(name) && n.coveredByForeign(routes, name, routed) {
			unrouted = append(unrouted, name)
		}
	}
	return misdirected, unrouted
}

// of returns the names of the chains that use a route configuration, which belongs to servers.
func (n *chainNames) of(routes string, servers []*gatewayServer) []registry.Hostname {
	var out []registry.Hostname
	for _, s := range servers {
		names, _ := s.serverNames()
		if len(names) == 0 {
			names = []string{string(anyHost)}
		}
		for _, name := range names {
			if h := registry.Hostname(name); n.owners[h] != nil && !n.foreign(routes, h) {
				out = append(out, h)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// foreignTo returns the names of other chains, sorted. If "*" is foreign, it includes, apart from
// "*", only names below the chain's own wildcards.
func (n *chainNames) foreignTo(routes string, own []registry.Hostname) []registry.Hostname {
	if !n.anyForeign && (n.owners[anyHost] == nil || !n.foreign(routes, anyHost)) {
		return slices.DeleteFunc(slices.Clone(n.sorted()), func(name registry.Hostname) bool { return !n.foreign(routes, name) })
	}
	out := []registry.Hostname{anyHost}
	for _, name := range own {
		if !name.IsWildcard() {
			continue
		}
		for i := range n.set().Below(name) {
			if below := n.sorted()[i]; n.foreign(routes, below) {
				out = append(out, below)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// coveredByForeign reports whether the longest known wildcard that covers a host is foreign and has
// no routes.
func (n *chainNames) coveredByForeign(routes string, host registry.Hostname, routed func(registry.Hostname) bool) bool {
	if n.wildcards {
		for wildcard := range hostname.Wildcards(host) {
			switch {
			case wildcard == host:
			case routed(wildcard):
				return false
			case n.owners[wildcard] != nil:
				return n.foreign(routes, wildcard)
			}
		}
	}
	return n.anyForeign && host != anyHost
}
