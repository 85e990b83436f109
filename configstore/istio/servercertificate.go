// SPDX-License-Identifier: Apache-2.0

package istio

import networking "istio.io/api/networking/v1alpha3"

// maxServerCertificates is the limit of the API: one for RSA and one for ECDSA.
const maxServerCertificates = 2

// checkCertificateSources checks that the server's certificate comes from one
// place, and those places that are lists.
func checkCertificateSources(at *field, tls *networking.ServerTLSSettings) {
	sources := 0
	for _, used := range []bool{
		tls.CredentialName != "",
		len(tls.CredentialNames) > 0,
		len(tls.TlsCertificates) > 0,
		tls.ServerCertificate != "" && tls.PrivateKey != "",
	} {
		if used {
			sources++
		}
	}
	if sources > 1 {
		at.refuse("must have only one of credentialName, credentialNames, tlsCertificates, serverCertificate with privateKey")
	}
	if n := len(tls.CredentialNames); n > maxServerCertificates {
		at.child("credentialNames").refuse("must have at most %d elements, has %d", maxServerCertificates, n)
	}
	for i, name := range tls.CredentialNames {
		checkSet(at.elem("credentialNames", i), name, "must not be empty")
	}
	if n := len(tls.TlsCertificates); n > maxServerCertificates {
		at.child("tlsCertificates").refuse("must have at most %d elements, has %d", maxServerCertificates, n)
	}
}

// warnBesideSecrets warns about settings that have no effect because a credential name provides
// everything.
func warnBesideSecrets(at *field, tls *networking.ServerTLSSettings) {
	const unused = "has no effect together with a credential name"
	if tls.ServerCertificate == "" || tls.PrivateKey == "" {
		// Both together are refused already.
		warnSet(at.child("serverCertificate"), tls.ServerCertificate, unused)
		warnSet(at.child("privateKey"), tls.PrivateKey, unused)
	}
	warnSet(at.child("caCertificates"), tls.CaCertificates, unused)
	warnSet(at.child("caCrl"), tls.CaCrl, unused)
}

// checkServerCertificates checks the files of a server without a credential name.
func checkServerCertificates(at *field, tls *networking.ServerTLSSettings) {
	const together = "is required: certificate and key go together"
	switch {
	case len(tls.TlsCertificates) > 0:
	case tls.ServerCertificate == "" && tls.PrivateKey == "":
		at.refuse("must have one of credentialName, credentialNames, tlsCertificates, serverCertificate with privateKey for mode %s", tls.Mode)
	default:
		checkSet(at.child("serverCertificate"), tls.ServerCertificate, together)
		checkSet(at.child("privateKey"), tls.PrivateKey, together)
	}
	for place, certificate := range elements(at, "tlsCertificates", tls.TlsCertificates) {
		checkSet(place.child("serverCertificate"), certificate.ServerCertificate, together)
		checkSet(place.child("privateKey"), certificate.PrivateKey, together)
		checkUnset(place.child("caCertificates"), certificate.CaCertificates, "must be set together with tlsCertificates instead")
	}
	if verifiesClients(tls) {
		if tls.CaCertificates == "" {
			at.child("caCertificates").refuse("is required for mode %s without a credential name", tls.Mode)
		}
	} else {
		checkUnset(at.child("caCrl"), tls.CaCrl, "must not be set for mode SIMPLE, which asks clients for no certificate")
	}
}
