// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"strings"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore"
)

// maxServerNameLength is Envoy's limit for the server name that it asks for.
const maxServerNameLength = 255

// checkClientTLS checks how connections to a service are secured; nil is fine.
func checkClientTLS(at *field, c configstore.Config, tls *networking.ClientTLSSettings) {
	if tls == nil {
		return
	}
	checkEnum(at.child("mode"), tls.Mode)
	checkInsecure(at, tls)
	checkLength(at.child("sni"), tls.Sni, maxServerNameLength)
	if reference, ok := strings.CutPrefix(tls.CredentialName, configMapScheme); ok {
		checkConfigMap(at.child("credentialName"), c, reference)
	}
	switch tls.Mode {
	case networking.ClientTLSSettings_SIMPLE, networking.ClientTLSSettings_MUTUAL:
		checkClientCertificates(at, tls)
	default:
		if tls.ClientCertificate != "" || tls.PrivateKey != "" || tls.CaCertificates != "" || tls.CaCrl != "" || tls.CredentialName != "" {
			at.warn("the certificates have no effect for mode %s", tls.Mode)
		}
	}
}

// checkClientCertificates checks where the certificates of a client come from: a
// secret or files.
func checkClientCertificates(at *field, tls *networking.ClientTLSSettings) {
	switch {
	case tls.CredentialName != "":
		const beside = "must not be set together with credentialName"
		checkUnset(at.child("clientCertificate"), tls.ClientCertificate, beside)
		checkUnset(at.child("privateKey"), tls.PrivateKey, beside)
		checkUnset(at.child("caCertificates"), tls.CaCertificates, beside)
		checkUnset(at.child("caCrl"), tls.CaCrl, beside)
	case tls.Mode == networking.ClientTLSSettings_MUTUAL:
		const mutual = "is required for mode MUTUAL without credentialName"
		checkSet(at.child("clientCertificate"), tls.ClientCertificate, mutual)
		checkSet(at.child("privateKey"), tls.PrivateKey, mutual)
	case (tls.ClientCertificate == "") != (tls.PrivateKey == ""):
		at.warn("clientCertificate and privateKey have an effect only together")
	}
}

// checkInsecure rejects disabled verification of the server together with settings for that
// verification, because they contradict each other. With mode MUTUAL a credentialName is allowed,
// because it may be the client's own certificate.
func checkInsecure(at *field, tls *networking.ClientTLSSettings) {
	if !tls.GetInsecureSkipVerify().GetValue() {
		return
	}
	insecure := at.child("insecureSkipVerify")
	simple := tls.Mode == networking.ClientTLSSettings_SIMPLE
	if !simple && tls.Mode != networking.ClientTLSSettings_MUTUAL {
		insecure.warn("has no effect for mode %s", tls.Mode)
		return
	}
	const beside = "must not be true together with %s, which would not be looked at"
	if tls.CaCertificates != "" {
		insecure.refuse(beside, "caCertificates")
	}
	if len(tls.SubjectAltNames) > 0 {
		insecure.refuse(beside, "subjectAltNames")
	}
	if simple && tls.CredentialName != "" {
		insecure.refuse(beside, "credentialName")
	}
	if tls.CaCrl != "" {
		insecure.warn("is true: caCrl has no effect")
	}
}

// configMapScheme starts a credentialName that is a ConfigMap.
const configMapScheme = "configmap://"

// checkConfigMap checks a reference "namespace/name" to a ConfigMap, which must be
// in the object's namespace.
func checkConfigMap(at *field, c configstore.Config, reference string) {
	namespace, name, _ := strings.Cut(reference, "/")
	switch {
	case namespace == "" || name == "" || name[0] == '/':
		at.refuse("must be %snamespace/name, is %q", configMapScheme, configMapScheme+reference)
	case namespace != c.Namespace:
		at.refuse("must be in the object's namespace %q, is %q", c.Namespace, configMapScheme+reference)
	}
}

// checkUnset refuses a value, saying why.
func checkUnset(at *field, value, why string) {
	if value != "" {
		at.refuse("%s", why)
	}
}

// warnSet warns of a value, saying why.
func warnSet(at *field, value, why string) {
	if value != "" {
		at.warn("%s", why)
	}
}

// checkSet refuses an empty value, saying why.
func checkSet(at *field, value, why string) {
	if value == "" {
		at.refuse("%s", why)
	}
}
