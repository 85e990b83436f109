// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"fmt"
	"maps"
	"slices"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/objects"
)

// routerFor returns a router with exactly the labels that a Gateway selects. Gateways for the same
// routers share one, so that its resources are computed once.
func (f *findings) routerFor(g *objects.Gateway) *proxy {
	p := g.Router()
	return f.proxies.Get(p.Namespace+"/"+objects.JoinLabels(p.Labels), func() *proxy { return &proxy{Proxy: *p} })
}

// listenersFor returns the listeners of a Gateway's router, sorted by name.
func (f *findings) listenersFor(g *objects.Gateway) []*gatewayListener {
	byName := f.routerOf(f.routerFor(g)).listeners
	out := make([]*gatewayListener, 0, len(byName))
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		out = append(out, byName[name])
	}
	return out
}

func (f *findings) gateway(g *objects.Gateway) {
	served := make(map[*networking.Server]*gatewayServer)
	for _, l := range f.listenersFor(g) {
		for _, s := range l.servers {
			served[s.spec] = s
		}
	}
	for i, spec := range g.Spec.GetServers() {
		field := objects.Element("spec.servers", i)
		f.credentials(field+".tls.credentialName", spec.GetTls().GetCredentialName())
		f.credentials(field+".tls.credentialNames", spec.GetTls().GetCredentialNames()...)
		if kind, _ := kindOf(spec); kind == passthrough || kind == autoPassthrough {
			f.unusedTLS(field+".tls", spec.GetTls())
		}
		switch s := served[spec]; {
		case s == nil:
			f.add(field, "a server before it, or of an older Gateway, has port %d, or one of the hosts on it", spec.GetPort().GetNumber())
		case !f.routed(s):
			f.add(field, "no VirtualService is for its hosts")
		}
	}
}

// routed reports whether a server has any traffic to serve.
func (f *findings) routed(s *gatewayServer) bool {
	if s.kind == autoPassthrough || s.redirects() {
		return true
	}
	return slices.ContainsFunc(f.Finder.BoundTo(s.gateway.String()), func(v *objects.VirtualService) bool { return s.sharesHost(v) })
}

// unusedTLS adds findings for TLS settings that a server ignores because it does not terminate TLS.
func (f *findings) unusedTLS(field string, tls *networking.ServerTLSSettings) {
	for _, setting := range []struct {
		name string
		set  bool
	}{
		{"httpsRedirect", tls.GetHttpsRedirect()},
		{"credentialName", tls.GetCredentialName() != ""},
		{"credentialNames", len(tls.GetCredentialNames()) > 0},
		{"serverCertificate", tls.GetServerCertificate() != ""},
		{"caCertificates", tls.GetCaCertificates() != ""},
		{"subjectAltNames", len(tls.GetSubjectAltNames()) > 0},
		{"cipherSuites", len(tls.GetCipherSuites()) > 0},
	} {
		if setting.set {
			f.addOnce(field+"."+setting.name, fmt.Errorf("a server of mode %s passes TLS on, and takes no part in it", tls.GetMode()))
		}
	}
}
