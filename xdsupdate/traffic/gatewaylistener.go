// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/pilotkit/pilotkit/internal/xdsbuild"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/objects"
)

// gatewayListener merges the servers of a router's Gateways on one address. It is immutable.
type gatewayListener struct {
	xdsbuild.GatewayListener
	// servers are in the order of precedence. They are either plain HTTP servers, or one TCP
	// server, or TLS servers.
	servers []*gatewayServer
	// taken are the hosts of the TLS servers.
	taken map[registry.Hostname]struct{}
}

// gatewayListeners merges the Gateways that select a router, oldest first, into listeners. Servers
// that conflict with an earlier server are left out:
//
//   - The first server of an address determines the type of its listener. Plain HTTP servers are
//     merged with plain HTTP servers, and TLS servers with TLS servers. All others are left out,
//     including a second TCP server.
//   - A TLS server is left out as a whole if it shares a host with an earlier one, because their
//     connections could not be distinguished. Namespaces of hosts make no difference, because they
//     are not part of the server name that a client sends.
//   - A server on one address is left out if a server of another namespace listens on all addresses
//     of the port, because connections to the address would reach only the newer server. A
//     namespace may divide its own addresses.
func (st *state) gatewayListeners(p *proxy) []*gatewayListener {
	var out []*gatewayListener
	at := make(map[string]*gatewayListener)
	for _, g := range st.GatewaysOf(&p.Proxy) {
		for i, spec := range g.Spec.GetServers() {
			port := p.listeningPort(spec.GetPort().GetNumber())
			if strings.HasPrefix(spec.GetBind(), objects.UnixScheme) {
				port = 0 // A socket has no port.
			}
			server := newGatewayServer(g, i, port)
			if server == nil {
				continue
			}
			address := xdsbuild.GatewayListener{Bind: server.bind, Port: port}
			if address.Bind == "" {
				address.Bind = p.wildcardAddress()
			}
			address.TLS = server.tls()
			address.ProxyProtocol = st.settings.configOf(p).GetGatewayTopology().GetProxyProtocol() != nil
			name := address.Name()
			if at[wildcardName(address)].excludes(server) {
				continue
			}
			if at[name] == nil {
				at[name] = &gatewayListener{GatewayListener: address, taken: make(map[registry.Hostname]struct{})}
				out = append(out, at[name])
			}
			at[name].join(server)
		}
	}
	return out
}

// wildcardName returns the name of the wildcard listener whose connections a listener on one
// address would take. It is empty for listeners that take none.
func wildcardName(l xdsbuild.GatewayListener) string {
	addr, err := netip.ParseAddr(l.Bind)
	if err != nil || addr.IsUnspecified() {
		return ""
	}
	l.Bind = "::"
	if addr.Is4() {
		l.Bind = "0.0.0.0"
	}
	return l.Name()
}

// excludes reports whether a wildcard listener, which may be nil, has a server of another namespace
// than a server on one of its addresses.
func (l *gatewayListener) excludes(s *gatewayServer) bool {
	return l != nil && slices.ContainsFunc(l.servers, func(o *gatewayServer) bool { return o.gateway.Namespace != s.gateway.Namespace })
}

// join adds a server unless it conflicts with an earlier one.
func (l *gatewayListener) join(s *gatewayServer) {
	if len(l.servers) > 0 && (s.tls() != l.TLS || !s.tls() && (s.kind != plainHTTP || l.servers[0].kind != plainHTTP)) {
		return
	}
	if s.tls() {
		for _, h := range s.hosts {
			if _, taken := l.taken[h.name]; taken {
				return
			}
		}
		for _, h := range s.hosts {
			l.taken[h.name] = struct{}{}
		}
	}
	l.servers = append(l.servers, s)
}

// listeningPort returns the port that a router listens on for a port of a Gateway: the target port
// of a service in front of the router, or else the port itself.
func (p *proxy) listeningPort(port uint32) uint32 {
	if target := p.targetPorts[port]; target != 0 {
		return target
	}
	return port
}

// wildcardAddress returns the wildcard address of a router, 0.0.0.0 or "::" if all its addresses
// are IPv6.
func (p *proxy) wildcardAddress() string {
	if len(p.addresses) == 0 {
		return "0.0.0.0"
	}
	for _, a := range p.addresses {
		if addr, err := netip.ParseAddr(a); err != nil || addr.Unmap().Is4() {
			return "0.0.0.0"
		}
	}
	return "::"
}
