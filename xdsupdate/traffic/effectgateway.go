// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"fmt"
	"slices"

	networking "istio.io/api/networking/v1alpha3"
)

// gateway finds what of a Gateway has no effect on a router that it selects and that
// has no other labels than the selector's.
func (f *findings) gateway(g *gateway) {
	p := &proxy{role: router, namespace: g.namespace, labels: g.spec.GetSelector()}
	var served []*gatewayServer
	for _, l := range f.gatewayListeners(p) {
		served = append(served, l.servers...)
	}
	for i, spec := range g.spec.GetServers() {
		field := element("spec.servers", i)
		f.credentials(field+".tls.credentialName", spec.GetTls().GetCredentialName())
		f.credentials(field+".tls.credentialNames", spec.GetTls().GetCredentialNames()...)
		if kind, _ := kindOf(spec); kind == passthrough || kind == autoPassthrough {
			f.unusedTLS(field+".tls", spec.GetTls())
		}
		at := slices.IndexFunc(served, func(s *gatewayServer) bool { return s.spec == spec })
		switch {
		case at < 0:
			f.add(field, "a server before it, or of an older Gateway, has port %d, or one of the hosts on it", spec.GetPort().GetNumber())
		case !f.routed(served[at]):
			f.add(field, "no VirtualService is for its hosts")
		}
	}
}

// routed reports whether a server has something to serve.
func (f *findings) routed(s *gatewayServer) bool {
	if s.kind == autoPassthrough || s.redirects() {
		return true
	}
	return slices.ContainsFunc(f.byGateway[s.gateway.String()], func(v *virtualService) bool { return s.sharesHost(v) })
}

// unusedTLS finds settings of a server that does not terminate TLS.
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
