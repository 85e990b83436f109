// SPDX-License-Identifier: Apache-2.0

package gatewayapi

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// TestLenientCertificates: certificates that Envoys accept and Go rejects are usable: with a negative serial
// number, and authorities with a curve that Go does not have.
func TestLenientCertificates(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(7), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	block := func(kind string, der []byte) []byte { return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}) }
	negative := block("CERTIFICATE", bytes.Replace(der, []byte{2, 1, 7}, []byte{2, 1, 0x87}, 1))
	p256 := []byte{0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7}
	curve := block("CERTIFICATE", bytes.Replace(der, p256, append(slices.Clip(p256[:7]), 2), 1)) // prime192v2
	s := secretOf(&corev1.Secret{Data: map[string][]byte{
		corev1.TLSCertKey: negative, corev1.TLSPrivateKeyKey: block("PRIVATE KEY", keyDER), "ca.crt": negative,
	}})
	if s.certificate != "" || s.authority != "" {
		t.Errorf("negative serial number: certificate %q, authority %q", s.certificate, s.authority)
	}
	if problem := badAuthority(curve, nil); problem != "" {
		t.Errorf("unknown curve: authority %q", problem)
	}
}
