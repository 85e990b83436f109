// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"time"
)

// authority issues the certificates of the demonstration.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	serial      int64 // serial number of the last certificate
}

func newAuthority() (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	a := &authority{certificate: template(1, "envoygateway"), key: key, serial: 1}
	a.certificate.IsCA, a.certificate.BasicConstraintsValid = true, true
	a.certificate.KeyUsage = x509.KeyUsageCertSign
	der, err := x509.CreateCertificate(rand.Reader, a.certificate, a.certificate, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	a.certificate, err = x509.ParseCertificate(der)
	return a, err
}

func template(serial int64, name string) *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
	}
}

// issue writes a new certificate for hosts, and its key, to two files, and returns its serial
// number. Between the two writes the pair does not match, and the last good pair continues to be
// served.
func (a *authority) issue(certificateFile, keyFile string, hosts ...string) (serial string, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", err
	}
	a.serial++
	t := template(a.serial, hosts[0])
	t.DNSNames, t.ExtKeyUsage = hosts, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	der, err := x509.CreateCertificate(rand.Reader, t, a.certificate, &key.PublicKey, a.key)
	if err != nil {
		return "", err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return "", err
	}
	if err := writeFile(certificateFile, encode("CERTIFICATE", der)); err != nil {
		return "", err
	}
	return t.SerialNumber.String(), writeFile(keyFile, encode("PRIVATE KEY", private))
}

// pem returns the authority's own certificate.
func (a *authority) pem() []byte { return encode("CERTIFICATE", a.certificate.Raw) }

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// writeFile replaces a file atomically, so that readers never see half of it.
func writeFile(path string, data []byte) error {
	next := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".new")
	if err := os.WriteFile(next, data, 0o600); err != nil {
		return err
	}
	return os.Rename(next, path)
}
