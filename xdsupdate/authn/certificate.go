// SPDX-License-Identifier: Apache-2.0

package authn

import (
	"crypto/tls"
	"crypto/x509"
)

// ofCertificate returns the identity in a client's certificate.
func (a *Authenticator) ofCertificate(state tls.ConnectionState) (Identity, error) {
	if len(state.VerifiedChains) == 0 {
		return Identity{}, a.refused.refuse(CauseNoIdentity, "the client's certificate has not been verified: the server's tls.Config has to ask for that")
	}
	leaf := state.VerifiedChains[0][0]
	if leaf.IsCA || leaf.KeyUsage&(x509.KeyUsageCertSign|x509.KeyUsageCRLSign) != 0 {
		return Identity{}, a.refused.refuse(CauseCertificate, "the client's certificate is that of an authority")
	}
	if len(leaf.URIs) != 1 {
		return Identity{}, a.refused.refuse(CauseCertificate, "the client's certificate has %d URIs, and must have one, its SPIFFE ID", len(leaf.URIs))
	}
	id, err := ParseSPIFFEID(leaf.URIs[0].String())
	if err != nil {
		return Identity{}, a.refused.refuse(CauseCertificate, "the client's certificate: %v", err)
	}
	return id, nil
}
