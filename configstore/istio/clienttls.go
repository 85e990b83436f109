// SPDX-License-Identifier: Apache-2.0

package istio

import networking "istio.io/api/networking/v1alpha3"

// checkClientTLS checks how connections to a service are secured; nil is fine.
func checkClientTLS(at *field, tls *networking.ClientTLSSettings) {
	if tls == nil {
		return
	}
	checkEnum(at.child("mode"), tls.Mode)
	if tls.CredentialName != "" {
		const beside = "must not be set beside credentialName"
		checkUnset(at.child("clientCertificate"), tls.ClientCertificate, beside)
		checkUnset(at.child("privateKey"), tls.PrivateKey, beside)
		checkUnset(at.child("caCertificates"), tls.CaCertificates, beside)
		checkUnset(at.child("caCrl"), tls.CaCrl, beside)
		return
	}
	switch tls.Mode {
	case networking.ClientTLSSettings_MUTUAL:
		const mutual = "is required for mode MUTUAL without credentialName"
		checkSet(at.child("clientCertificate"), tls.ClientCertificate, mutual)
		checkSet(at.child("privateKey"), tls.PrivateKey, mutual)
	case networking.ClientTLSSettings_ISTIO_MUTUAL:
		if tls.ClientCertificate != "" || tls.PrivateKey != "" || tls.CaCertificates != "" || tls.CaCrl != "" {
			at.warn("the certificates have no effect for mode ISTIO_MUTUAL, which brings its own")
		}
	default:
		if (tls.ClientCertificate == "") != (tls.PrivateKey == "") {
			at.warn("clientCertificate and privateKey have an effect only together")
		}
	}
}

// checkUnset refuses a value, saying why.
func checkUnset(at *field, value, why string) {
	if value != "" {
		at.refuse("%s", why)
	}
}

// checkSet refuses an empty value, saying why.
func checkSet(at *field, value, why string) {
	if value == "" {
		at.refuse("%s", why)
	}
}
