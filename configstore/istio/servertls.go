// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"encoding/base64"
	"encoding/hex"
	"strings"

	networking "istio.io/api/networking/v1alpha3"
)

// maxServerCertificates is what the API allows: one for RSA and one for ECDSA.
const maxServerCertificates = 2

// checkServerTLS checks how a listener secures its connections.
func checkServerTLS(at *field, tls *networking.ServerTLSSettings) {
	checkEnum(at.child("mode"), tls.Mode)
	checkTLSVersions(at, tls)
	checkCiphers(at, tls.CipherSuites)
	checkCertificateHashes(at, tls)
	verifiesClients := tls.Mode == networking.ServerTLSSettings_MUTUAL || tls.Mode == networking.ServerTLSSettings_OPTIONAL_MUTUAL
	switch {
	case tls.Mode == networking.ServerTLSSettings_ISTIO_MUTUAL:
		checkIstioMutual(at, tls)
		return
	case !terminatesTLS(tls):
		if certificateSources(tls) > 0 {
			at.warn("the certificates have no effect for mode %s", tls.Mode)
		}
	default:
		checkServerCertificates(at, tls)
		fromSecret := tls.CredentialName != "" || len(tls.CredentialNames) > 0 || tls.CaCertCredentialName != ""
		if verifiesClients && tls.CaCertificates == "" && !fromSecret {
			at.child("caCertificates").refuse("is required for mode %s without a credential name", tls.Mode)
		}
	}
	if tls.CaCrl != "" {
		switch {
		case !verifiesClients:
			at.child("caCrl").refuse("must not be set for mode %s, which asks clients for no certificate", tls.Mode)
		case tls.CredentialName != "" || len(tls.CredentialNames) > 0:
			at.child("caCrl").refuse("must not be set beside a credential name, which brings its own")
		}
	}
	if len(tls.SubjectAltNames) > 0 && !verifiesClients {
		at.child("subjectAltNames").warn("has no effect for mode %s", tls.Mode)
	}
}

// certificateSources counts the places that the server's certificate is to come
// from.
func certificateSources(tls *networking.ServerTLSSettings) int {
	sources := 0
	for _, used := range []bool{
		tls.CredentialName != "",
		len(tls.CredentialNames) > 0,
		len(tls.TlsCertificates) > 0,
		tls.ServerCertificate != "" || tls.PrivateKey != "",
	} {
		if used {
			sources++
		}
	}
	return sources
}

func checkServerCertificates(at *field, tls *networking.ServerTLSSettings) {
	switch certificateSources(tls) {
	case 0:
		at.refuse("must have one of credentialName, credentialNames, tlsCertificates, serverCertificate with privateKey for mode %s", tls.Mode)
	case 1:
	default:
		at.refuse("must have only one of credentialName, credentialNames, tlsCertificates, serverCertificate with privateKey")
	}
	const together = "is required: certificate and key go together"
	if tls.ServerCertificate != "" || tls.PrivateKey != "" {
		checkSet(at.child("serverCertificate"), tls.ServerCertificate, together)
		checkSet(at.child("privateKey"), tls.PrivateKey, together)
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
	for i, certificate := range tls.TlsCertificates {
		if certificate == nil {
			at.elem("tlsCertificates", i).refuseNull()
			continue
		}
		checkSet(at.elem("tlsCertificates", i).child("serverCertificate"), certificate.ServerCertificate, together)
		checkSet(at.elem("tlsCertificates", i).child("privateKey"), certificate.PrivateKey, together)
		checkUnset(at.elem("tlsCertificates", i).child("caCertificates"), certificate.CaCertificates, "must be set beside tlsCertificates instead")
	}
}

// checkIstioMutual: with the workload's own certificates nothing else is to be
// said.
func checkIstioMutual(at *field, tls *networking.ServerTLSSettings) {
	const unset = "must not be set for mode ISTIO_MUTUAL"
	checkUnset(at.child("serverCertificate"), tls.ServerCertificate, unset)
	checkUnset(at.child("privateKey"), tls.PrivateKey, unset)
	checkUnset(at.child("caCertificates"), tls.CaCertificates, unset)
	checkUnset(at.child("caCrl"), tls.CaCrl, unset)
	checkUnset(at.child("credentialName"), tls.CredentialName, unset)
	checkUnset(at.child("caCertCredentialName"), tls.CaCertCredentialName, unset)
	if len(tls.CredentialNames) > 0 {
		at.child("credentialNames").refuse("%s", unset)
	}
	if len(tls.TlsCertificates) > 0 {
		at.child("tlsCertificates").refuse("%s", unset)
	}
	if len(tls.SubjectAltNames) > 0 {
		at.child("subjectAltNames").refuse("%s", unset)
	}
}

func checkTLSVersions(at *field, tls *networking.ServerTLSSettings) {
	checkEnum(at.child("minProtocolVersion"), tls.MinProtocolVersion)
	checkEnum(at.child("maxProtocolVersion"), tls.MaxProtocolVersion)
	minimum, maximum := tls.MinProtocolVersion, tls.MaxProtocolVersion
	if maximum != networking.ServerTLSSettings_TLS_AUTO && minimum > maximum {
		at.child("minProtocolVersion").refuse("must not be above maxProtocolVersion %s, is %s", maximum, minimum)
	}
	old := minimum == networking.ServerTLSSettings_TLSV1_0 || minimum == networking.ServerTLSSettings_TLSV1_1
	if old && len(tls.CipherSuites) == 0 {
		at.child("minProtocolVersion").warn("is %s, which has none of the default ciphers; set cipherSuites", minimum)
	}
}

func checkCiphers(at *field, ciphers []string) {
	var seen repetitions[string]
	for i, cipher := range ciphers {
		switch cipher {
		case "ECDHE-ECDSA-AES128-GCM-SHA256", "ECDHE-RSA-AES128-GCM-SHA256",
			"ECDHE-ECDSA-AES256-GCM-SHA384", "ECDHE-RSA-AES256-GCM-SHA384",
			"ECDHE-ECDSA-CHACHA20-POLY1305", "ECDHE-RSA-CHACHA20-POLY1305",
			"ECDHE-ECDSA-AES128-SHA", "ECDHE-RSA-AES128-SHA", "ECDHE-ECDSA-AES256-SHA", "ECDHE-RSA-AES256-SHA",
			"AES128-GCM-SHA256", "AES256-GCM-SHA384", "AES128-SHA", "AES256-SHA", "DES-CBC3-SHA":
		default:
			at.elem("cipherSuites", i).warn("is ignored: Envoy has no cipher %q", cipher)
		}
		if first, ok := seen.add(cipher, i); ok {
			at.elem("cipherSuites", i).warn("repeats cipherSuites[%d]: %q", first, cipher)
		}
	}
}

// checkCertificateHashes: Envoy rejects the whole listener over a malformed hash.
func checkCertificateHashes(at *field, tls *networking.ServerTLSSettings) {
	const size = 32 // of SHA-256
	for i, spki := range tls.VerifyCertificateSpki {
		if sum, err := base64.StdEncoding.DecodeString(spki); err != nil || len(sum) != size {
			at.elem("verifyCertificateSpki", i).refuse("must be a SHA-256 hash in base64, is %q", spki)
		}
	}
	for i, hash := range tls.VerifyCertificateHash {
		if sum, err := hex.DecodeString(strings.ReplaceAll(hash, ":", "")); err != nil || len(sum) != size {
			at.elem("verifyCertificateHash", i).refuse("must be a SHA-256 hash in hexadecimal, is %q", hash)
		}
	}
}
