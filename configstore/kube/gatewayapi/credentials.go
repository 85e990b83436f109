// SPDX-License-Identifier: Apache-2.0

package gatewayapi

import (
	"slices"
	"strings"

	"google.golang.org/protobuf/types/known/wrapperspb"
	networking "istio.io/api/networking/v1alpha3"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// maxCertificates is the maximum number of certificates of a server.
const maxCertificates = 2

// builtinCredential is the proxy's own certificate.
const builtinCredential = "builtin://"

// tlsOf resolves the TLS settings of a listener, and records their problems. It returns nil if the
// listener has no TLS settings or does not work.
func (v view) tlsOf(l *listener, gateway *gatewayv1.Gateway) *networking.ServerTLSSettings {
	secure := l.spec.Protocol == gatewayv1.HTTPSProtocolType || l.spec.Protocol == gatewayv1.TLSProtocolType
	switch {
	case !secure:
		return nil
	case l.spec.TLS == nil:
		l.badTLS = problem{string(gatewayv1.ListenerReasonInvalid), "protocol " + string(l.spec.Protocol) + " needs tls"}
		return nil
	case deref(l.spec.TLS.Mode, gatewayv1.TLSModeTerminate) == gatewayv1.TLSModePassthrough:
		return &networking.ServerTLSSettings{Mode: networking.ServerTLSSettings_PASSTHROUGH}
	}
	out := &networking.ServerTLSSettings{
		Mode: networking.ServerTLSSettings_SIMPLE, CipherSuites: cipherSuites(string(l.spec.TLS.Options[optionCipherSuites])),
	}
	switch l.spec.TLS.Options[optionTerminateMode] {
	case "ISTIO_MUTUAL":
		out.Mode = networking.ServerTLSSettings_ISTIO_MUTUAL
		return out
	case "ISTIO_SIMPLE":
		out.CredentialName = builtinCredential
		return out
	}
	v.setCertificates(l, out)
	if l.spec.Protocol == gatewayv1.HTTPSProtocolType {
		v.setFrontendValidation(l, gateway, out)
	}
	switch l.spec.TLS.Options[optionTerminateMode] { // It overrides the mode of the validation (Istio 1.30).
	case "MUTUAL":
		out.Mode = networking.ServerTLSSettings_MUTUAL
	case "OPTIONAL_MUTUAL":
		out.Mode = networking.ServerTLSSettings_OPTIONAL_MUTUAL
	}
	if l.badTLS.is() {
		return nil
	}
	return out
}

// setCertificates sets the usable certificates of a listener.
func (v view) setCertificates(l *listener, out *networking.ServerTLSSettings) {
	invalid := string(gatewayv1.ListenerReasonInvalidCertificateRef)
	refs := l.spec.TLS.CertificateRefs
	if len(refs) > maxCertificates {
		l.noRefs, refs = problem{invalid, "only two certificates can be used"}, nil
	} else if len(refs) == 0 {
		l.noRefs = problem{invalid, "there is no certificate"}
	}
	var names []string
	for i := range refs {
		key, wrong := v.certificate(string(l.owner.Kind), l.owner.Namespace, &refs[i])
		if wrong.is() {
			l.noRefs = l.noRefs.or(wrong)
		} else {
			names = append(names, secretCredential(key))
		}
	}
	switch len(names) {
	case 0:
		l.badTLS = problem{string(gatewayv1.ListenerReasonInvalid), "no certificate can be used"}
	case 1:
		out.CredentialName = names[0]
	default:
		out.CredentialNames = names
	}
}

// certificate resolves a certificate reference of an object of a kind and namespace.
func (v view) certificate(kind, ns string, ref *gatewayv1.SecretObjectReference) (Key, problem) {
	invalid := string(gatewayv1.ListenerReasonInvalidCertificateRef)
	key := Key{namespaceOf(ref.Namespace, ns), string(ref.Name)}
	if groupOf(ref.Group, "") != "" || kindOf(ref.Kind, kindSecret) != kindSecret {
		return key, problem{invalid, "a certificate must be a Secret"}
	}
	from := reference{gatewayv1.GroupName, kind, ns, ""}
	if !v.granted(from, reference{"", kindSecret, key.Namespace, key.Name}) {
		return key, problem{
			string(gatewayv1.ListenerReasonRefNotPermitted), "no ReferenceGrant allows a " + kind + " of " + ns + " the Secret " + key.String(),
		}
	}
	found := v.secret(key)
	switch {
	case found == nil:
		return key, problem{invalid, "Secret " + key.String() + " does not exist"}
	case found.certificate != "":
		return key, problem{invalid, "Secret " + key.String() + " " + found.certificate}
	}
	return key, problem{}
}

// frontendValidation returns the client validation of a port, or nil if clients are not validated.
func frontendValidation(gateway *gatewayv1.Gateway, port int32) *gatewayv1.FrontendTLSValidation {
	if gateway.Spec.TLS == nil || gateway.Spec.TLS.Frontend == nil {
		return nil
	}
	frontend := gateway.Spec.TLS.Frontend
	for i := range frontend.PerPort {
		if frontend.PerPort[i].Port == port {
			return frontend.PerPort[i].TLS.Validation
		}
	}
	return frontend.Default.Validation
}

// setFrontendValidation sets the CA certificate for clients. Without a usable one the listener does
// not work.
func (v view) setFrontendValidation(l *listener, gateway *gatewayv1.Gateway, out *networking.ServerTLSSettings) {
	validation := frontendValidation(gateway, l.view.Port)
	if validation == nil {
		return
	}
	name, wrong := v.authority(gateway.Namespace, validation.CACertificateRefs)
	if wrong.is() {
		l.unaccepted = problem{string(gatewayv1.ListenerReasonNoValidCACertificate), wrong.message}
		l.noRefs = wrong
		l.badTLS = problem{string(gatewayv1.ListenerReasonInvalid), "the authority of clients cannot be used"}
		return
	}
	insecure := validation.Mode == gatewayv1.AllowInsecureFallback
	out.CaCertCredentialName = name + "-cacert"
	out.InsecureSkipVerify = wrapperspb.Bool(insecure)
	out.Mode = networking.ServerTLSSettings_MUTUAL
	if insecure {
		out.Mode = networking.ServerTLSSettings_OPTIONAL_MUTUAL
	}
}

// authority resolves the CA certificate references of a Gateway.
func (v view) authority(ns string, refs []gatewayv1.ObjectReference) (string, problem) {
	invalid := string(gatewayv1.ListenerReasonInvalidCACertificateRef)
	if len(refs) != 1 {
		return "", problem{invalid, "there must be exactly one caCertificateRef"}
	}
	ref := refs[0]
	kind, key := string(ref.Kind), Key{namespaceOf(ref.Namespace, ns), string(ref.Name)}
	if ref.Group != "" || kind != kindConfigMap && kind != kindSecret {
		return "", problem{string(gatewayv1.ListenerReasonInvalidCACertificateKind), "an authority must be a ConfigMap or a Secret"}
	}
	from := reference{gatewayv1.GroupName, string(KindGateway), ns, ""}
	if !v.granted(from, reference{"", kind, key.Namespace, key.Name}) {
		return "", problem{
			string(gatewayv1.ListenerReasonRefNotPermitted), "no ReferenceGrant allows a Gateway of " + ns + " the " + kind + " " + key.String(),
		}
	}
	name, wrong := v.authorityNamed(kind, key)
	if wrong != "" {
		return "", problem{invalid, wrong}
	}
	return name, problem{}
}

// authorityNamed returns the credential of a CA certificate, or its problem.
func (v view) authorityNamed(kind string, key Key) (credential, wrong string) {
	if kind == kindSecret {
		found := v.secret(key)
		switch {
		case found == nil:
			return "", "Secret " + key.String() + " does not exist"
		case found.authority != "":
			return "", "Secret " + key.String() + " " + found.authority
		}
		return secretCredential(key), ""
	}
	found := v.configMap(key)
	switch {
	case found == nil:
		return "", "ConfigMap " + key.String() + " does not exist"
	case found.authority != "":
		return "", "ConfigMap " + key.String() + " " + found.authority
	}
	return configMapCredential(key), ""
}

// cipherSuites returns the suites of a list that Envoy supports, because the option may be any
// text.
func cipherSuites(list string) []string {
	known := []string{
		"ECDHE-ECDSA-AES128-GCM-SHA256", "ECDHE-RSA-AES128-GCM-SHA256", "ECDHE-ECDSA-AES256-GCM-SHA384",
		"ECDHE-RSA-AES256-GCM-SHA384", "ECDHE-ECDSA-CHACHA20-POLY1305", "ECDHE-RSA-CHACHA20-POLY1305",
		"ECDHE-ECDSA-AES128-SHA", "ECDHE-RSA-AES128-SHA", "ECDHE-ECDSA-AES256-SHA", "ECDHE-RSA-AES256-SHA",
		"AES128-GCM-SHA256", "AES256-GCM-SHA384", "AES128-SHA", "AES256-SHA", "DES-CBC3-SHA",
	}
	var out []string
	for suite := range strings.SplitSeq(list, ",") {
		if suite = strings.TrimSpace(suite); slices.Contains(known, suite) && !slices.Contains(out, suite) {
			out = append(out, suite)
		}
	}
	return out
}
