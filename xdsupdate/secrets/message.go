// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"path"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"

	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// Type is the type URL of secrets.
const Type = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret"

// message returns what a proxy is sent under a name; nil: there is none.
func (r request) message(resource string, s *store) *tlsv3.Secret {
	switch {
	case r.Certificate != "":
		return certificate(resource, onProxy(r.Certificate), onProxy(r.Key), r.Certificate)
	case resource == envoy.SystemRoots:
		return authorities(resource, onProxy(s.opts.SystemRoots), s.opts.SystemRoots)
	case r.Authorities != "":
		return authorities(resource, onProxy(r.Authorities), r.Authorities)
	}
	for _, n := range r.of {
		secret := s.get(n)
		switch {
		case secret == nil:
		case r.Roots || len(secret.Key) == 0:
			if len(secret.Authorities) > 0 {
				return authorities(resource, inline(secret.Authorities), "")
			}
		default:
			return certificate(resource, inline(secret.Certificate), inline(secret.Key), "")
		}
	}
	return nil
}

// certificate returns a certificate and its key. The proxy watches the directory of
// its own file: "" if it has none.
func certificate(resource string, chain, key *core.DataSource, file string) *tlsv3.Secret {
	return &tlsv3.Secret{Name: resource, Type: &tlsv3.Secret_TlsCertificate{TlsCertificate: &tlsv3.TlsCertificate{
		CertificateChain: chain, PrivateKey: key, WatchedDirectory: watched(file),
	}}}
}

func authorities(resource string, roots *core.DataSource, file string) *tlsv3.Secret {
	return &tlsv3.Secret{Name: resource, Type: &tlsv3.Secret_ValidationContext{ValidationContext: &tlsv3.CertificateValidationContext{
		TrustedCa: roots, WatchedDirectory: watched(file),
	}}}
}

func watched(file string) *core.WatchedDirectory {
	if file == "" {
		return nil
	}
	return &core.WatchedDirectory{Path: path.Dir(file)}
}

func onProxy(file string) *core.DataSource {
	return &core.DataSource{Specifier: &core.DataSource_Filename{Filename: file}}
}

func inline(data []byte) *core.DataSource {
	return &core.DataSource{Specifier: &core.DataSource_InlineBytes{InlineBytes: data}}
}
