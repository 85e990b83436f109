// SPDX-License-Identifier: Apache-2.0

package istio

import (
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/internal/fingerprint"
)

// checkServerTLS checks how a listener secures its connections.
func checkServerTLS(at *field, tls *networking.ServerTLSSettings) {
	checkEnum(at.child("mode"), tls.Mode)
	checkTLSVersions(at, tls)
	checkCiphers(at, tls.CipherSuites)
	checkCertificateHashes(at, tls)
	checkCertificateSources(at, tls)
	switch {
	case tls.Mode == networking.ServerTLSSettings_ISTIO_MUTUAL:
		checkIstioMutual(at, tls)
	case !terminatesTLS(tls):
		checkPassthrough(at, tls)
	case fromSecrets(tls):
		warnBesideSecrets(at, tls)
	default:
		checkServerCertificates(at, tls)
	}
	usesNames := verifiesClients(tls) || tls.Mode == networking.ServerTLSSettings_ISTIO_MUTUAL
	if len(tls.SubjectAltNames) > 0 && !usesNames {
		at.child("subjectAltNames").warn("has no effect for mode %s", tls.Mode)
	}
}

// terminatesTLS reports whether the server decrypts rather than passes through.
func terminatesTLS(tls *networking.ServerTLSSettings) bool {
	return tls.Mode != networking.ServerTLSSettings_PASSTHROUGH && tls.Mode != networking.ServerTLSSettings_AUTO_PASSTHROUGH
}

func verifiesClients(tls *networking.ServerTLSSettings) bool {
	return tls.Mode == networking.ServerTLSSettings_MUTUAL || tls.Mode == networking.ServerTLSSettings_OPTIONAL_MUTUAL
}

// fromSecrets reports whether certificate, key and authorities come from
// secrets.
func fromSecrets(tls *networking.ServerTLSSettings) bool {
	return tls.CredentialName != "" || len(tls.CredentialNames) > 0
}

// checkIstioMutual: the workload's own certificates leave nothing to be set.
func checkIstioMutual(at *field, tls *networking.ServerTLSSettings) {
	const unset = "must not be set for mode ISTIO_MUTUAL"
	checkUnset(at.child("serverCertificate"), tls.ServerCertificate, unset)
	checkUnset(at.child("privateKey"), tls.PrivateKey, unset)
	checkUnset(at.child("caCertificates"), tls.CaCertificates, unset)
	checkUnset(at.child("credentialName"), tls.CredentialName, unset)
	if len(tls.CredentialNames) > 0 {
		at.child("credentialNames").refuse("%s", unset)
	}
	if len(tls.TlsCertificates) > 0 {
		at.child("tlsCertificates").refuse("%s", unset)
	}
	warnSet(at.child("caCrl"), tls.CaCrl, "has no effect for mode ISTIO_MUTUAL")
	warnSet(at.child("caCertCredentialName"), tls.CaCertCredentialName, "has no effect for mode ISTIO_MUTUAL")
}

// checkPassthrough warns of certificates, which a server that passes TLS through
// has no use for.
func checkPassthrough(at *field, tls *networking.ServerTLSSettings) {
	if fromSecrets(tls) || len(tls.TlsCertificates) > 0 || tls.ServerCertificate != "" || tls.PrivateKey != "" ||
		tls.CaCertificates != "" || tls.CaCrl != "" || tls.CaCertCredentialName != "" {
		at.warn("the certificates have no effect for mode %s", tls.Mode)
	}
	if tls.CredentialName != "" {
		checkUnset(at.child("caCrl"), tls.CaCrl, "must not be set together with credentialName, which brings its own")
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
		case "", "ALL", // of OpenSSL's language, as are words that begin with an operator
			"ECDHE-ECDSA-AES128-GCM-SHA256", "ECDHE-RSA-AES128-GCM-SHA256",
			"ECDHE-ECDSA-AES256-GCM-SHA384", "ECDHE-RSA-AES256-GCM-SHA384",
			"ECDHE-ECDSA-CHACHA20-POLY1305", "ECDHE-RSA-CHACHA20-POLY1305",
			"ECDHE-ECDSA-AES128-SHA", "ECDHE-RSA-AES128-SHA", "ECDHE-ECDSA-AES256-SHA", "ECDHE-RSA-AES256-SHA",
			"AES128-GCM-SHA256", "AES256-GCM-SHA384", "AES128-SHA", "AES256-SHA", "DES-CBC3-SHA":
		default:
			if isAlphanumeric(cipher[0]) {
				at.elem("cipherSuites", i).warn("is ignored: Envoy has no cipher %q", cipher)
			}
		}
		if first, ok := seen.add(cipher, i); ok {
			at.elem("cipherSuites", i).warn("repeats cipherSuites[%d]: %q", first, cipher)
		}
	}
}

// checkCertificateHashes: Envoy rejects the whole listener over a malformed hash.
func checkCertificateHashes(at *field, tls *networking.ServerTLSSettings) {
	for i, spki := range tls.VerifyCertificateSpki {
		if !fingerprint.IsSPKI(spki) {
			at.elem("verifyCertificateSpki", i).refuse("must be a SHA-256 hash in base64, is %q", spki)
		}
	}
	for i, hash := range tls.VerifyCertificateHash {
		if !fingerprint.Is(hash) {
			at.elem("verifyCertificateHash", i).refuse("must be a SHA-256 hash in hexadecimal, is %q", hash)
		}
	}
}
