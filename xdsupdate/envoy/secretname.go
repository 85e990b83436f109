// SPDX-License-Identifier: Apache-2.0

package envoy

import (
	"strings"

	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
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
	fileCertPrefix   = "file-cert:"
	fileRootPrefix   = "file-root:"
	rootsSuffix      = "-cacert"
	fileSeparator    = "~"
)

// CredentialName returns the name of the secret with the certificate and key of a credentialName:
// "kubernetes://NAME". A name with a scheme is returned unchanged.
func CredentialName(name string) string {
	if strings.Contains(name, "://") {
		return name
	}
	return credentialScheme + name
}

// CredentialRootsName returns the name of the secret with the roots of a credentialName:
// "kubernetes://NAME-cacert".
func CredentialRootsName(name string) string { return CredentialName(name) + rootsSuffix }

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

// sds references a secret on the stream that also carries the referencing resource.
func sds(name string) *tlsv3.SdsSecretConfig {
	return &tlsv3.SdsSecretConfig{Name: name, SdsConfig: ADS()}
}
