// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
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

func (f *findings) gateway(g *objects.Gateway) func() []Effect {
	clients := "all routers"
	if g.Owner != (objects.ObjectName{}) {
		clients = fmt.Sprintf("routers of namespace %s of the Kubernetes Gateway %s", g.Owner.Namespace, g.Owner.Name)
	} else if labels := registry.Labels(g.Spec.GetSelector()); len(labels) > 0 {
		clients = "routers with the labels " + labels.String()
	}
	var effects []Effect
	served := make(map[*networking.Server]*gatewayServer)
	for _, l := range f.listenersFor(g) {
		for _, s := range l.servers {
			if served[s.spec] = s; s.gateway == g {
				effects = append(effects, Effect{clients, fmt.Sprintf("%s on port %d for %s",
					s.spec.GetPort().GetProtocol(), s.port(), strings.Join(s.spec.GetHosts(), ", "))})
			}
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
	return func() []Effect { return effects }
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

// credentials adds findings for credential names with a scheme, such as "sds://provider". Such
// secrets belong to an SDS provider next to the proxy.
func (f *findings) credentials(field string, names ...string) {
	for _, name := range names {
		if name == "" {
			continue
		}
		if _, known := envoy.ParseSecretName(envoy.CredentialName(name)); !known {
			f.add(field, "providers of secrets beside proxies are not used: %q is asked for as a secret of this server, which only a provider of the program can serve", name)
		}
	}
}
