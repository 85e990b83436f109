// SPDX-License-Identifier: Apache-2.0

package authn

import (
	"bytes"
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"

	"github.com/pilotkit/pilotkit/internal/regularfile"
)

// Material is the certificate of a server, with its key, and the authorities that issue the
// certificates of its clients. Authorities may be nil if certificates are optional. Then the server
// does not request certificates from clients.
type Material struct {
	Certificate tls.Certificate
	Authorities *x509.CertPool
}

// Files are the PEM files of Material. Certificate is a chain, beginning with the server's own
// certificate. The files may be symbolic links, as in mounted volumes of Kubernetes. Authorities
// may be empty if Material.Authorities may be nil.
type Files struct{ Certificate, Key, Authorities string }

// leaf returns the server's own certificate. The material must have passed check.
func (m *Material) leaf() *x509.Certificate {
	leaf, _ := x509.ParseCertificate(m.Certificate.Certificate[0])
	return leaf
}

// check returns an error if the material cannot be used.
func (m *Material) check(optional bool) error {
	if m == nil || len(m.Certificate.Certificate) == 0 {
		return errors.New("there is no certificate")
	}
	leaf, err := x509.ParseCertificate(m.Certificate.Certificate[0])
	if err != nil {
		return fmt.Errorf("the certificate: %w", err)
	}
	key, ok := m.Certificate.PrivateKey.(crypto.Signer)
	if !ok {
		return errors.New("the certificate has no key that signs")
	}
	if public, ok := key.Public().(interface {
		Equal(other crypto.PublicKey) bool
	}); !ok || !public.Equal(leaf.PublicKey) {
		return errors.New("the certificate and the key do not belong together")
	}
	if m.Authorities == nil && !optional {
		return errors.New("there are no authorities for the certificates of clients")
	}
	return nil
}

// equal reports whether two materials are the same, ignoring the key.
func (m *Material) equal(other *Material) bool {
	return slices.EqualFunc(m.Certificate.Certificate, other.Certificate.Certificate, bytes.Equal) &&
		(m.Authorities == nil) == (other.Authorities == nil) && (m.Authorities == nil || m.Authorities.Equal(other.Authorities))
}

// read reads the files.
func (f Files) read(limit int) (*Material, error) {
	chain, err := readFile(f.Certificate, limit)
	if err != nil {
		return nil, err
	}
	if _, err := certificatesIn(f.Certificate, chain); err != nil {
		return nil, err
	}
	key, err := readFile(f.Key, limit)
	if err != nil {
		return nil, err
	}
	m := &Material{}
	if m.Certificate, err = tls.X509KeyPair(chain, key); err != nil {
		return nil, fmt.Errorf("the certificate %s with the key %s: %w", f.Certificate, f.Key, err)
	}
	if f.Authorities == "" {
		return m, nil
	}
	text, err := readFile(f.Authorities, limit)
	if err != nil {
		return nil, err
	}
	authorities, err := certificatesIn(f.Authorities, text)
	if err != nil {
		return nil, err
	}
	m.Authorities = x509.NewCertPool()
	for _, a := range authorities {
		m.Authorities.AddCert(a)
	}
	return m, nil
}

func readFile(path string, limit int) ([]byte, error) {
	data, _, err := regularfile.Read(path, limit)
	return data, err
}

// certificatesIn returns the certificates of a file, at least one. Unlike
// x509.CertPool.AppendCertsFromPEM it does not skip a broken one, because the file may be in the
// middle of a write.
func certificatesIn(path string, text []byte) (out []*x509.Certificate, err error) {
	blocks := bytes.Count(text, []byte("-----BEGIN "))
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			return nil, fmt.Errorf("%s has something other than certificates", path)
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("%s: certificate %d: %w", path, len(out)+1, err)
		}
		out = append(out, certificate)
	}
	if len(out) == 0 || len(out) != blocks {
		return nil, fmt.Errorf("%s has %d certificates in PEM, and %d blocks that begin", path, len(out), blocks)
	}
	return out, nil
}
