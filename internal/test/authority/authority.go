// SPDX-License-Identifier: Apache-2.0

// Package authority issues certificates for tests.
package authority

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net/url"
	"strings"
	"testing"
	"time"
)

// validity is the validity of all certificates, before and after now.
const validity = 24 * time.Hour

// Authority issues certificates.
type Authority struct {
	tb          testing.TB
	Certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// New returns an authority with its own key.
func New(tb testing.TB) *Authority {
	tb.Helper()
	key := newKey(tb)
	template := &x509.Certificate{
		SerialNumber: serial(tb), Subject: pkix.Name{CommonName: "authority"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-validity), NotAfter: time.Now().Add(validity), KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}
	certificate, err := x509.ParseCertificate(sign(tb, template, template, key, key))
	if err != nil {
		tb.Fatal(err)
	}
	return &Authority{tb, certificate, key}
}

func newKey(tb testing.TB) *ecdsa.PrivateKey {
	tb.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	return key
}

func serial(tb testing.TB) *big.Int {
	tb.Helper()
	n, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 100))
	if err != nil {
		tb.Fatal(err)
	}
	return n
}

func sign(tb testing.TB, template, parent *x509.Certificate, key, parentKey *ecdsa.PrivateKey) []byte {
	tb.Helper()
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, parentKey)
	if err != nil {
		tb.Fatal(err)
	}
	return der
}

// Issue returns a certificate for DNS names and URIs, for servers and clients, and its key, in PEM.
func (a *Authority) Issue(names ...string) (certificate, key []byte) {
	a.tb.Helper()
	template := &x509.Certificate{
		SerialNumber: serial(a.tb), Subject: pkix.Name{CommonName: names[0]},
		NotBefore: time.Now().Add(-validity), NotAfter: time.Now().Add(validity), KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	for _, n := range names {
		if !strings.Contains(n, "://") {
			template.DNSNames = append(template.DNSNames, n)
			continue
		}
		u, err := url.Parse(n)
		if err != nil {
			a.tb.Fatal(err)
		}
		template.URIs = append(template.URIs, u)
	}
	own := newKey(a.tb)
	private, err := x509.MarshalECPrivateKey(own)
	if err != nil {
		a.tb.Fatal(err)
	}
	der := sign(a.tb, template, a.Certificate, own, a.key)
	return encode("CERTIFICATE", der), encode("EC PRIVATE KEY", private)
}

// Pair is Issue for package crypto/tls.
func (a *Authority) Pair(names ...string) tls.Certificate {
	a.tb.Helper()
	pair, err := tls.X509KeyPair(a.Issue(names...))
	if err != nil {
		a.tb.Fatal(err)
	}
	return pair
}

// PEM returns the authority's own certificate.
func (a *Authority) PEM() []byte { return encode("CERTIFICATE", a.Certificate.Raw) }

// Pool returns a pool that contains only the authority's certificate.
func (a *Authority) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.Certificate)
	return pool
}

// RevocationList returns an empty revocation list, in PEM.
func (a *Authority) RevocationList() []byte {
	a.tb.Helper()
	der, err := x509.CreateRevocationList(rand.Reader, &x509.RevocationList{
		Number: big.NewInt(1), ThisUpdate: time.Now().Add(-validity), NextUpdate: time.Now().Add(validity),
	}, a.Certificate, a.key)
	if err != nil {
		a.tb.Fatal(err)
	}
	return encode("X509 CRL", der)
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}
