// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/internal/ipaddr"
	"github.com/pilotkit/pilotkit/internal/xdsbuild"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/hostname"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/objects"
)

// serverKind is the way a Gateway server handles connections.
type serverKind uint8

const (
	// plainHTTP serves HTTP with a route configuration that all such servers of a listener share.
	plainHTTP serverKind = iota
	// plainTCP forwards connections.
	plainTCP
	// terminatedHTTP terminates TLS and serves HTTP with a route configuration of its own.
	terminatedHTTP
	// terminatedTCP terminates TLS and forwards connections.
	terminatedTCP
	// passthrough forwards TLS by its server name, according to TLS routes.
	passthrough
	// autoPassthrough forwards TLS to the cluster that its server name denotes.
	autoPassthrough
)

// gatewayServer is a server of a Gateway. It is immutable.
type gatewayServer struct {
	gateway *objects.Gateway
	spec    *networking.Server
	kind    serverKind
	// position is the position of the server in its Gateway, starting at 1.
	position int
	hosts    []serverHost
	// names indexes hosts.
	names *hostname.Set
	// bind is the address that the server listens on, in canonical form. It is empty for all
	// addresses.
	bind string
	// unread lists the unreadable parts of its TLS settings. With any, the server accepts no
	// connections.
	unread []configstore.Violation
	// routes is the name of its route configuration. It is empty if the server does not serve HTTP.
	routes string
}

// newGatewayServer returns a server of a Gateway by its index. The listening port can differ from
// the port in the spec. The result is nil if the server's TLS settings are missing.
func newGatewayServer(g *objects.Gateway, index int, listening uint32) *gatewayServer {
	spec := g.Spec.GetServers()[index]
	kind, ok := kindOf(spec)
	if !ok {
		return nil
	}
	s := &gatewayServer{
		gateway: g, spec: spec, kind: kind, position: index + 1, hosts: newServerHosts(spec.GetHosts(), g.Namespace),
		bind: canonicalBind(spec.GetBind()),
	}
	s.names = hostname.NewSet(namesOf(s.hosts))
	if s.tls() {
		s.unread = configstore.Unread(spec.GetTls())
	}
	switch kind {
	case plainHTTP:
		s.routes = fmt.Sprintf("http.%d", listening)
	case terminatedHTTP:
		s.routes = fmt.Sprintf("https.%d.%s.%s.%s", s.port(), spec.GetPort().GetName(), g.Name, g.Namespace)
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

// port is the port in the server's spec, which can differ from the port that it listens on.
func (s *gatewayServer) port() uint32 { return s.spec.GetPort().GetNumber() }

// tls reports whether connections use TLS.
func (s *gatewayServer) tls() bool { return s.kind != plainHTTP && s.kind != plainTCP }

// takesTLSRoutes reports whether servers of a kind apply the TLS routes of a VirtualService.
// Passthrough servers do. Servers that terminate TLS apply only routes of the Gateway API's
// TLSRoutes, which attach to either.
func (k serverKind) takesTLSRoutes(v *objects.VirtualService) bool {
	return k == passthrough || k == terminatedTCP && objects.StandsForRoutes(v.Config)
}

// takes reports whether a VirtualService has routes of a kind that the server applies.
func (s *gatewayServer) takes(v *objects.VirtualService) bool {
	switch s.kind {
	case plainHTTP, terminatedHTTP:
		return len(v.Spec.GetHttp()) > 0
	case plainTCP, terminatedTCP, passthrough:
		return len(v.Spec.GetTcp()) > 0 && s.kind != passthrough || len(v.Spec.GetTls()) > 0 && s.kind.takesTLSRoutes(v)
	default: // autoPassthrough supports no routes
		return false
	}
}

// redirects reports whether the server redirects HTTP requests to HTTPS. A server that terminates
// TLS redirects requests that a trusted proxy in front of it reports as received in plain text.
func (s *gatewayServer) redirects() bool {
	return (s.kind == plainHTTP || s.kind == terminatedHTTP) && s.spec.GetTls().GetHttpsRedirect()
}

// hostsOf returns the hosts that the server and a VirtualService have in common.
func (s *gatewayServer) hostsOf(v *objects.VirtualService) []registry.Hostname {
	return intersect(s.hosts, s.names, v.Hosts, v.Namespace)
}

// sharesHost reports whether hostsOf returns any host.
func (s *gatewayServer) sharesHost(v *objects.VirtualService) bool {
	return slices.ContainsFunc(v.Hosts, func(h registry.Hostname) bool {
		return slices.ContainsFunc(s.names.Matching(h), func(i int) bool { return s.hosts[i].admits(v.Namespace) })
	})
}

// serverNames returns the server names of the server's connections. No names stand for all
// connections.
func (s *gatewayServer) serverNames() ([]string, bool) {
	hosts := make([]string, 0, len(s.hosts))
	for _, h := range s.hosts {
		hosts = append(hosts, string(h.name))
	}
	return xdsbuild.ServerNames(hosts)
}

// serverHost is a host of a Gateway server, "host" or "namespace/host".
type serverHost struct {
	// namespace restricts the VirtualServices that may use the host. It is empty for any namespace.
	namespace string
	// name is canonical, see hostname.Canonical.
	name registry.Hostname
}

// newServerHosts parses the hosts of a Gateway server in a namespace.
func newServerHosts(hosts []string, namespace string) []serverHost {
	out := make([]serverHost, 0, len(hosts))
	for _, h := range hosts {
		host := serverHost{name: hostname.Canonical(h)}
		if ns, name, ok := strings.Cut(h, "/"); ok {
			host.name = hostname.Canonical(name)
			switch ns {
			case "*":
			case ".":
				host.namespace = namespace
			default:
				host.namespace = ns
			}
		}
		out = append(out, host)
	}
	return out
}

// admits reports whether objects of a namespace may use the host.
func (h serverHost) admits(namespace string) bool {
	return h.namespace == "" || h.namespace == namespace
}

// intersect returns the distinct hosts that a VirtualService of a namespace and a server have in
// common. If two hosts overlap, the narrower one is in the result. The set names contains the names
// of the server's hosts.
func intersect(server []serverHost, names *hostname.Set, hosts []registry.Hostname, namespace string) []registry.Hostname {
	var out []registry.Hostname
	have := make(map[registry.Hostname]struct{}, min(len(hosts), hostname.FewHosts.Get()))
	for _, h := range hosts {
		for _, i := range names.Matching(h) {
			s := server[i]
			if !s.admits(namespace) {
				continue
			}
			narrower := h
			if s.name.SubsetOf(h) {
				narrower = s.name
			}
			if _, again := have[narrower]; !again {
				have[narrower] = struct{}{}
				out = append(out, narrower)
			}
		}
	}
	return out
}

func namesOf(hosts []serverHost) []registry.Hostname {
	out := make([]registry.Hostname, len(hosts))
	for i, h := range hosts {
		out[i] = h.name
	}
	return out
}

// maxUnixPath is the maximum length of a unix socket path.
const maxUnixPath = 107

// canonicalBind returns a canonical bind, so that different spellings of an address are equal.
func canonicalBind(bind string) string {
	file, unix := strings.CutPrefix(bind, objects.UnixScheme)
	switch {
	case !unix:
		return ipaddr.Canonical(bind)
	case file == "" || isAbstract(file):
		return bind
	default:
		return objects.UnixScheme + path.Clean(file)
	}
}

// isAbstract reports whether the path of a unix socket is a name in Linux' abstract namespace
// instead of a file.
func isAbstract(file string) bool { return strings.HasPrefix(file, "@") }

// cleanDirectory returns the canonical form of an absolute directory, or "" for a relative one.
func cleanDirectory(directory string) string {
	if !path.IsAbs(directory) {
		return ""
	}
	return path.Clean(directory)
}

// checkBind returns an error if a Gateway cannot, or must not, listen on a canonical bind. The
// empty bind stands for all addresses and is valid.
func (s *settings) checkBind(bind string) error {
	if bind == "" {
		return nil
	}
	file, unix := strings.CutPrefix(bind, objects.UnixScheme)
	if !unix {
		if err := ipaddr.CheckBind(bind); err != nil {
			return fmt.Errorf("bind %.100q: %w", bind, err)
		}
		return nil
	}
	if err := s.checkSocket(file); err != nil {
		return fmt.Errorf("bind %.100q: %w", bind, err)
	}
	return nil
}

// checkSocket checks the path of a unix socket. The check matters because Envoy deletes an existing
// file of that name.
func (s *settings) checkSocket(file string) error {
	directory := s.unixSockets
	if directory != "/" {
		directory += "/"
	}
	switch {
	case len(file) > maxUnixPath:
		return fmt.Errorf("the path has more than %d bytes", maxUnixPath)
	case strings.ContainsFunc(file, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return errors.New("the path has a control character")
	case isAbstract(file) && len(file) > 1:
		return nil
	case s.unixSockets == "":
		return errors.New("files are not allowed (Options.UnixSockets)")
	case !strings.HasPrefix(file, directory) || file == directory:
		return fmt.Errorf("the file is not in %s (Options.UnixSockets)", s.unixSockets)
	default:
		return nil
	}
}
