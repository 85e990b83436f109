// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net/url"
	"strings"
	"time"

	"github.com/pilotkit/pilotkit/xdsupdate/secrets"
)

// authority issues certificates: in your mesh, SPIRE, cert-manager or a vault does.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	issued      int64
}

func newAuthority() *authority {
	a := &authority{key: newKey()}
	template := a.template()
	template.IsCA, template.BasicConstraintsValid, template.KeyUsage = true, true, x509.KeyUsageCertSign
	var err error
	a.certificate, err = x509.ParseCertificate(a.sign(template, template, a.key))
	check(err)
	return a
}

func newKey() *ecdsa.PrivateKey {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check(err)
	return key
}

func (a *authority) template() *x509.Certificate {
	a.issued++
	return &x509.Certificate{
		SerialNumber: big.NewInt(a.issued), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
}

func (a *authority) sign(template, parent *x509.Certificate, key *ecdsa.PrivateKey) []byte {
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, a.key)
	check(err)
	return der
}

// issue returns a certificate for a DNS name or a SPIFFE ID.
func (a *authority) issue(name string) tls.Certificate {
	template, key := a.template(), newKey()
	if strings.Contains(name, "://") {
		id, err := url.Parse(name)
		check(err)
		template.URIs = []*url.URL{id}
	} else {
		template.DNSNames = []string{name}
	}
	return tls.Certificate{Certificate: [][]byte{a.sign(template, a.certificate, key)}, PrivateKey: key}
}

// secret returns a certificate and its key as proxies get them.
func (a *authority) secret(name string) *secrets.Secret {
	issued := a.issue(name)
	key, err := x509.MarshalPKCS8PrivateKey(issued.PrivateKey)
	check(err)
	return &secrets.Secret{
		Certificate: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: issued.Certificate[0]}),
		Key:         pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}),
	}
}

func (a *authority) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.certificate)
	return pool
}
