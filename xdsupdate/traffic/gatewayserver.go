// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"fmt"
	"slices"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// serverKind says what a server of a Gateway does with connections.
type serverKind uint8

const (
	// plainHTTP serves HTTP by a route configuration that all such servers of a
	// listener share.
	plainHTTP serverKind = iota
	// plainTCP passes connections on.
	plainTCP
	// terminatedHTTP decrypts, and serves HTTP by a route configuration of its own.
	terminatedHTTP
	// terminatedTCP decrypts and passes on.
	terminatedTCP
	// passthrough passes TLS on by its server name, to where TLS routes say.
	passthrough
	// autoPassthrough passes TLS on to the cluster that its server name says.
	autoPassthrough
)

// gatewayServer is a server of a Gateway. It is immutable.
type gatewayServer struct {
	gateway *gateway
	spec    *networking.Server
	kind    serverKind
	// position is that of the server in its Gateway, from 1.
	position int
	hosts    []serverHost
	// names are those of the hosts.
	names *hostSet
	// bind is what the server says of the address it listens on, in its canonical form;
	// empty: all.
	bind string
	// unread are the parts of its tls that cannot be read: it takes no connections.
	unread []configstore.Violation
	// routes is the name of its route configuration; empty if it does not serve HTTP.
	routes string
}

// newGatewayServer returns the server of a Gateway at an index, which listens on a port
// that need not be the one that it names; nil if it cannot be served.
func newGatewayServer(g *gateway, index int, listening uint32) *gatewayServer {
	spec := g.spec.GetServers()[index]
	kind, ok := kindOf(spec)
	if !ok {
		return nil
	}
	s := &gatewayServer{
		gateway: g, spec: spec, kind: kind, position: index + 1, hosts: newServerHosts(spec.GetHosts(), g.namespace),
		bind: canonicalBind(spec.GetBind()),
	}
	s.names = newHostSet(namesOf(s.hosts))
	if s.tls() {
		s.unread = configstore.Unread(spec.GetTls())
	}
	switch kind {
	case plainHTTP:
		s.routes = fmt.Sprintf("http.%d", listening)
	case terminatedHTTP:
		s.routes = fmt.Sprintf("https.%d.%s.%s.%s", s.port(), spec.GetPort().GetName(), g.name, g.namespace)
	default:
		return s
	}
	if s.bind != "" {
		s.routes += "." + s.bind
	}
	return s
}

func kindOf(spec *networking.Server) (kind serverKind, ok bool) {
	protocol := registry.ParseProtocol(spec.GetPort().GetProtocol())
	switch {
	case protocol.IsHTTP():
		return plainHTTP, true
	case !protocol.IsTLS():
		return plainTCP, true
	case spec.GetTls() == nil:
		return 0, false
	case spec.GetTls().GetMode() == networking.ServerTLSSettings_PASSTHROUGH:
		return passthrough, true
	case spec.GetTls().GetMode() == networking.ServerTLSSettings_AUTO_PASSTHROUGH:
		return autoPassthrough, true
	case protocol == registry.ProtocolHTTPS:
		return terminatedHTTP, true
	default:
		return terminatedTCP, true
	}
}

// port is the port that the server names, which need not be the one that it
// listens on.
func (s *gatewayServer) port() uint32 { return s.spec.GetPort().GetNumber() }

// tls reports whether connections are TLS.
func (s *gatewayServer) tls() bool { return s.kind != plainHTTP && s.kind != plainTCP }

// takesTLSRoutes reports whether servers of a kind take the TLS routes of a VirtualService:
// those that pass TLS on and, of the Gateway API, whose TLSRoutes attach to either, those
// that terminate it.
func (k serverKind) takesTLSRoutes(v *virtualService) bool {
	return k == passthrough || k == terminatedTCP && standsForRoutes(v.config)
}

// redirects reports whether the server redirects HTTP requests to HTTPS. One that
// terminates TLS does so with requests that a proxy in front of it, which is trusted to
// say so, was sent in plain text.
func (s *gatewayServer) redirects() bool {
	return (s.kind == plainHTTP || s.kind == terminatedHTTP) && s.spec.GetTls().GetHttpsRedirect()
}

// hostsOf returns the hosts that the server has in common with a VirtualService.
func (s *gatewayServer) hostsOf(v *virtualService) []registry.Hostname {
	return intersect(s.hosts, s.names, v.hosts, v.namespace)
}

// sharesHost reports whether hostsOf returns any.
func (s *gatewayServer) sharesHost(v *virtualService) bool {
	return slices.ContainsFunc(v.hosts, func(h registry.Hostname) bool {
		return slices.ContainsFunc(s.names.matching(h), func(i int) bool { return s.hosts[i].admits(v.namespace) })
	})
}

// serverNames returns the names by which connections come to the server; none
// stands for all of them.
func (s *gatewayServer) serverNames() ([]string, bool) {
	hosts := make([]string, 0, len(s.hosts))
	for _, h := range s.hosts {
		hosts = append(hosts, string(h.name))
	}
	return envoy.ServerNames(hosts)
}
