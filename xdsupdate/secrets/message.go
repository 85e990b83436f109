// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"errors"
	"fmt"
	"path"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"

	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// Type is the type URL of secrets.
const Type = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret"

// errOnlyAuthorities is an error because a proxy that waits for a certificate rejects authorities.
var errOnlyAuthorities = errors.New("it has authorities and no certificate, under the name of a certificate")

// message returns the resource for a name, nil if there is none.
func (r request) message(resource string, s *store) (*tlsv3.Secret, error) {
	switch {
	case r.Certificate != "":
		return certificate(resource, onProxy(r.Certificate), onProxy(r.Key), r.Certificate), nil
	case resource == envoy.SystemRoots:
		return authorities(resource, onProxy(s.opts.SystemRoots), s.opts.SystemRoots), nil
	case r.Authorities != "":
		return authorities(resource, onProxy(r.Authorities), r.Authorities), nil
	}
	for _, n := range r.of {
		secret := s.get(n)
		switch {
		case secret == nil:
		case !r.Roots && len(secret.Key) > 0:
			return certificate(resource, inline(secret.Certificate), inline(secret.Key), ""), nil
		case len(secret.Authorities) == 0:
		case r.ofCertificate(resource):
			return nil, fmt.Errorf("secret %s: %w", n, errOnlyAuthorities)
		default:
			return secret.authorities(resource), nil
		}
	}
	return nil, nil
}

// ofCertificate reports whether a name can only be that of a certificate and its key. For the
// host's own names the type of the secret is unknown.
func (r request) ofCertificate(resource string) bool {
	return r.Credential != "" && !r.Roots || resource == envoy.WorkloadCertificate
}

// certificate returns a resource with a certificate and its key. If file is set, the proxy watches
// the directory of its own file.
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

func (s *Secret) authorities(resource string) *tlsv3.Secret {
	out := authorities(resource, inline(s.Authorities), "")
	if len(s.Revocations) > 0 {
		out.GetValidationContext().Crl = inline(s.Revocations)
	}
	return out
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
