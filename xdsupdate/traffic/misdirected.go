// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"iter"
	"maps"
	"slices"
	"sync"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// Clients of HTTP/2 send the requests for several hosts on one connection if its
// certificate is good for all of them and they have one address. The TLS servers of a
// port are filter chains, each with routes of its own, of which the server name of the
// connection chooses one. So a request can come to a chain that its host, as a server
// name, would not have chosen. It is answered with 421 (Misdirected Request), on which
// browsers open another connection for the host: also where a wildcard of the chain covers
// the host, because the narrower name of the other says whose it is.
//
// A chain that has routes for the very host, of a VirtualService that is bound to its
// Gateway as well, serves it, as in Istio: unless the program's own server asks clients for
// certificates otherwise. Nobody gets past that by a connection for another name.
//
// A route configuration says this by a virtual host with the hosts of other servers. Hosts
// that no server has are answered with 404 as elsewhere.

// anyHost covers all hosts.
const anyHost registry.Hostname = "*"

// mostForeignHosts is how many hosts the route configurations of a listener have of other
// servers, all together. They grow with the square of the number of servers; where they
// would be more, a route configuration answers all hosts but its own with 421.
const mostForeignHosts = 100_000

// chainNames are the server names of the filter chains of a listener. It is immutable.
type chainNames struct {
	// owners are the servers of the names. A chain for all names has "*".
	owners map[registry.Hostname]*gatewayServer
	// sorted and set are all names.
	sorted func() []registry.Hostname
	set    func() *hostSet
	// wildcards: some name is one.
	wildcards bool
	// anyForeign: what is not a name of a chain is foreign to all chains.
	anyForeign bool
}

// newChainNames returns the names of the chains of a listener as Envoy chooses them: the
// first chain with a name has it, and one that shares a name with an earlier chain is left
// out.
func (st *state) newChainNames(p *proxy, l *gatewayListener) *chainNames {
	n := &chainNames{owners: make(map[registry.Hostname]*gatewayServer, len(l.servers))}
	configs := 0
	for _, s := range l.servers {
		for names := range st.namesOfChains(p, s) {
			n.claim(names, s)
		}
		if s.kind == terminatedHTTP {
			configs++
		}
	}
	n.sorted = sync.OnceValue(func() []registry.Hostname { return slices.Sorted(maps.Keys(n.owners)) })
	n.set = sync.OnceValue(func() *hostSet { return newHostSet(n.sorted()) })
	n.anyForeign = n.owners[anyHost] == nil && len(n.owners)*configs > mostForeignHosts
	return n
}

// claim takes the names of a chain for its server, unless one of them is taken.
func (n *chainNames) claim(names []string, by *gatewayServer) {
	if len(names) == 0 {
		names = []string{string(anyHost)}
	}
	for _, name := range names {
		if n.owners[registry.Hostname(name)] != nil {
			return
		}
	}
	for _, name := range names {
		n.owners[registry.Hostname(name)] = by
		n.wildcards = n.wildcards || registry.Hostname(name).IsWildcard()
	}
}

// namesOfChains yields the server names of each filter chain of a server that is for all
// connections with these names; none stands for all names. Those of AUTO_PASSTHROUGH are
// the names of clusters, by which nobody is called.
func (st *state) namesOfChains(p *proxy, s *gatewayServer) iter.Seq[[]string] {
	return func(yield func([]string) bool) {
		switch s.kind {
		case passthrough:
			st.namesOfTLSRoutes(p, s, yield)
		case terminatedHTTP, terminatedTCP:
			if !envoy.HasCertificate(s.spec) || !st.namesOfTLSRoutes(p, s, yield) {
				return
			}
			names, ok := s.serverNames()
			if ok && (s.kind == terminatedHTTP || st.takesAll(p, s)) {
				yield(names)
			}
		default:
		}
	}
}

// namesOfTLSRoutes yields the names of the TLS routes of a server, until yield returns false.
func (st *state) namesOfTLSRoutes(p *proxy, s *gatewayServer, yield func([]string) bool) (more bool) {
	for _, v := range st.virtualServicesOf(p, s) {
		if len(v.spec.GetTls()) == 0 || !s.kind.takesTLSRoutes(v) || !s.sharesHost(v) {
			continue
		}
		for _, r := range v.spec.GetTls() {
			for _, m := range r.GetMatch() {
				if len(m.GetDestinationSubnets()) > 0 || len(r.GetRoute()) == 0 || !s.fits(p, v, m) {
					continue
				}
				if names, ok := s.namesOf(v, m); ok && !yield(names) {
					return false
				}
			}
		}
	}
	return true
}

// takesAll reports whether a TCP route of a server takes all its connections.
func (st *state) takesAll(p *proxy, s *gatewayServer) bool {
	for r, err := range st.tcpRoutes(p, s) {
		if err == nil && len(r.ranges) == 0 {
			return true
		}
	}
	return false
}

// allowed returns the hosts for which a server may have routes: not those of which another
// server asks clients for certificates otherwise. Without TLS, when n is nil, all are.
func (n *chainNames) allowed(s *gatewayServer, hosts []registry.Hostname) []registry.Hostname {
	if n == nil {
		return hosts
	}
	return slices.DeleteFunc(hosts, func(h registry.Hostname) bool {
		name, ok := mostSpecific(n.owners, h)
		return ok && n.foreign(s.routes, name) && !n.owners[name].trusts(s)
	})
}

// foreign reports whether a name is that of another chain than a route configuration's.
func (n *chainNames) foreign(routes string, name registry.Hostname) bool {
	return n.owners[name].routes != routes
}

// trusts reports whether a server may be passed by with a connection to another one: if it
// does not ask clients for certificates, or if both ask for the same.
func (s *gatewayServer) trusts(other *gatewayServer) bool {
	return s.kind != terminatedHTTP || !envoy.VerifiesClients(s.spec.GetTls()) || envoy.SameClients(s.spec.GetTls(), other.spec.GetTls())
}

// missing returns which hosts the route configuration of servers needs beside those that it
// has routes for, sorted: those whose requests are misdirected, and those of its own that a
// misdirected wildcard would cover.
func (n *chainNames) missing(routes string, servers []*gatewayServer, routed func(registry.Hostname) bool) (misdirected, unrouted []registry.Hostname) {
	own := n.of(routes, servers)
	if len(own) == 0 {
		return nil, nil // There is no chain, and so no request.
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

// of returns the names of the chains with a route configuration, which is that of servers.
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

// foreignTo returns the names of other chains than those with some names, sorted, but those
// that a foreign "*" covers and none of these names.
func (n *chainNames) foreignTo(routes string, own []registry.Hostname) []registry.Hostname {
	if !n.anyForeign && (n.owners[anyHost] == nil || !n.foreign(routes, anyHost)) {
		return slices.DeleteFunc(slices.Clone(n.sorted()), func(name registry.Hostname) bool { return !n.foreign(routes, name) })
	}
	out := []registry.Hostname{anyHost}
	for _, name := range own {
		if !name.IsWildcard() {
			continue
		}
		for _, i := range n.set().below(name) {
			if below := n.sorted()[i]; n.foreign(routes, below) {
				out = append(out, below)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// coveredByForeign reports whether of the wildcards that cover a host, the longest of
// which a route configuration knows is foreign and has no routes.
func (n *chainNames) coveredByForeign(routes string, host registry.Hostname, routed func(registry.Hostname) bool) bool {
	if n.wildcards {
		for wildcard := range wildcardsOf(host) {
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
