// SPDX-License-Identifier: Apache-2.0

package envoy

import (
	"strings"

	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
)

// The names of the secrets of a proxy's own: the certificate of the workload, and
// the roots of the mesh.
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

// CredentialName returns the name of the secret with the certificate and key of a
// credentialName: "kubernetes://NAME". A name that has a scheme is returned as it
// is.
func CredentialName(name string) string {
	if strings.Contains(name, "://") {
		return name
	}
	return credentialScheme + name
}

// CredentialRootsName returns the name of the secret with the roots that belong to
// a credentialName: "kubernetes://NAME-cacert".
func CredentialRootsName(name string) string { return CredentialName(name) + rootsSuffix }

// FileCertificateName returns the name of the secret of two files:
// "file-cert:CERTIFICATE~KEY".
func FileCertificateName(certificate, key string) string {
	return fileCertPrefix + certificate + fileSeparator + key
}

// FileRootsName returns the name of the secret of a file with roots:
// "file-root:FILE".
func FileRootsName(file string) string { return fileRootPrefix + file }

// SecretName is what the name of a secret says.
type SecretName struct {
	// Roots: the secret has certificates of authorities rather than a certificate
	// with its key.
	Roots bool
	// Credential is the NAME of "kubernetes://NAME" and "kubernetes://NAME-cacert".
	Credential string
	// Certificate and Key are the files of "file-cert:CERTIFICATE~KEY".
	Certificate, Key string
	// Authorities is the file of "file-root:FILE"; "system" stands for the roots of
	// the operating system.
	Authorities string
}

// ParseSecretName reads names that the functions above make, WorkloadCertificate
// and MeshRoots; other names are not ok. A file name with "~" cannot be told from
// two, and is not ok either.
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

// sds refers to a secret that comes over the stream on which its user came.
func sds(name string) *tlsv3.SdsSecretConfig {
	return &tlsv3.SdsSecretConfig{Name: name, SdsConfig: ADS()}
}
