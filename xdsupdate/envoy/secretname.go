// SPDX-License-Identifier: Apache-2.0

package envoy

import (
	"strings"

	networking "istio.io/api/networking/v1alpha3"
)

// The names of a proxy's own secrets: the certificate of the workload, and the roots of the mesh.
const (
	WorkloadCertificate = "default"
	MeshRoots           = "ROOTCA"
)

// SystemRoots is the name of the secret with the roots of the operating system.
const SystemRoots = fileRootPrefix + "system"

const (
	credentialScheme = "kubernetes://"
	ownCredential    = "builtin://"
	fileCertPrefix   = "file-cert:"
	fileRootPrefix   = "file-root:"
	rootsSuffix      = "-cacert"
	fileSeparator    = "~"
)

// CredentialName returns the name of the secret with the certificate and key of a credentialName:
// "kubernetes://NAME". The name "builtin://" stands for WorkloadCertificate, and another name with a
// scheme is returned unchanged.
func CredentialName(name string) string {
	switch {
	case name == ownCredential:
		return WorkloadCertificate
	case strings.Contains(name, "://"):
		return name
	default:
		return credentialScheme + name
	}
}

// CredentialRootsName returns the name of the secret with the roots of a credentialName:
// "kubernetes://NAME-cacert", and MeshRoots for "builtin://".
func CredentialRootsName(name string) string {
	if name == ownCredential {
		return MeshRoots
	}
	return CredentialName(name) + rootsSuffix
}

// FileCertificateName returns the name of the secret of two files: "file-cert:CERTIFICATE~KEY".
func FileCertificateName(certificate, key string) string {
	return fileCertPrefix + certificate + fileSeparator + key
}

// FileRootsName returns the name of the secret of a file with roots: "file-root:FILE".
func FileRootsName(file string) string { return fileRootPrefix + file }

// SecretName is a parsed name of a secret.
type SecretName struct {
	// Roots is set if the secret has certificates of authorities instead of a certificate with its
	// key.
	Roots bool
	// Credential is the NAME of "kubernetes://NAME" and "kubernetes://NAME-cacert".
	Credential string
	// Certificate and Key are the files of "file-cert:CERTIFICATE~KEY".
	Certificate, Key string
	// Authorities is the file of "file-root:FILE"; "system" means the roots of the operating
	// system.
	Authorities string
}

// ParseSecretName parses the names that the functions above return, WorkloadCertificate and
// MeshRoots. It returns false for other names, and for file names with "~", because they are
// ambiguous.
func ParseSecretName(name string) (s SecretName, ok bool) {
	if rest, found := strings.CutPrefix(name, credentialScheme); found {
		s.Credential, s.Roots = strings.CutSuffix(rest, rootsSuffix)
		return s, s.Credential != ""
	}
	if rest, found := strings.CutPrefix(name, fileCertPrefix); found {
		s.Certificate, s.Key, ok = strings.Cut(rest, fileSeparator)
		return s, ok && s.Certificate != "" && s.Key != "" && !strings.Contains(s.Key, fileSeparator)
	}
	if rest, found := strings.CutPrefix(name, fileRootPrefix); found {
		s.Roots, s.Authorities = true, rest
		return s, rest != ""
	}
	s.Roots = name == MeshRoots
	return s, s.Roots || name == WorkloadCertificate
}

// ServerSecrets returns the names of the secrets that the TLS context of a server references:
// ServerCertificates and ServerRoots.
func ServerSecrets(tls *networking.ServerTLSSettings) []string {
	names := ServerCertificates(tls)
	if roots := ServerRoots(tls); roots != "" {
		names = append(names, roots)
	}
	return names
}

// ServerCertificates returns the names of the secrets with the certificates of a server.
func ServerCertificates(tls *networking.ServerTLSSettings) []string {
	var names []string
	switch {
	case tls.GetMode() == networking.ServerTLSSettings_ISTIO_MUTUAL:
		return []string{WorkloadCertificate}
	case len(tls.GetCredentialNames()) > 0:
		for _, n := range tls.GetCredentialNames() {
			names = append(names, CredentialName(n))
		}
	case tls.GetCredentialName() != "":
		return []string{CredentialName(tls.GetCredentialName())}
	case len(tls.GetTlsCertificates()) > 0:
		for _, c := range tls.GetTlsCertificates() {
			names = append(names, FileCertificateName(c.GetServerCertificate(), c.GetPrivateKey()))
		}
	case tls.GetServerCertificate() != "":
		return []string{FileCertificateName(tls.GetServerCertificate(), tls.GetPrivateKey())}
	}
	return names
}

// ServerRoots returns the name of the secret with the authorities of client certificates. It is empty
// if the server requests no client certificate.
func ServerRoots(tls *networking.ServerTLSSettings) string {
	switch tls.GetMode() {
	case networking.ServerTLSSettings_ISTIO_MUTUAL:
		return MeshRoots
	case networking.ServerTLSSettings_MUTUAL, networking.ServerTLSSettings_OPTIONAL_MUTUAL:
	default:
		return ""
	}
	switch {
	case strings.Contains(tls.GetCaCertCredentialName(), "://") && strings.HasSuffix(tls.GetCaCertCredentialName(), rootsSuffix):
		return tls.GetCaCertCredentialName() // derived from a Kubernetes Gateway; it is the whole name
	case tls.GetCaCertCredentialName() != "":
		return CredentialRootsName(tls.GetCaCertCredentialName())
	case tls.GetCredentialName() != "":
		return CredentialRootsName(tls.GetCredentialName())
	case len(tls.GetCredentialNames()) > 0:
		return CredentialRootsName(tls.GetCredentialNames()[0])
	default:
		return FileRootsName(tls.GetCaCertificates())
	}
}
