// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"math/big"
)

// testAuthorities returns a certificate, another one for each number.
func testAuthorities(number int) []byte {
	key := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	template := &x509.Certificate{SerialNumber: big.NewInt(int64(number))}
	der, err := x509.CreateCertificate(nil, template, template, key.Public(), key)
	if err != nil {
		panic(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}
