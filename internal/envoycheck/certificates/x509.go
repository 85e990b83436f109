// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"math/big"
	"time"
)

// parsed is a parsed X.509 certificate (RFC 5280). x509.ParseCertificate is stricter than proxies: it
// rejects negative serial numbers, and curves that Go does not have, also of an authority among many.
type parsed struct {
	TBS struct {
		Version            int `asn1:"optional,explicit,default:0,tag:0"`
		SerialNumber       *big.Int
		SignatureAlgorithm pkix.AlgorithmIdentifier
		Issuer             asn1.RawValue
		Validity           struct{ NotBefore, NotAfter time.Time }
		Subject            asn1.RawValue
		PublicKey          struct {
			Whole     asn1.RawContent
			Algorithm pkix.AlgorithmIdentifier
			Key       asn1.BitString
		}
		IssuerID   asn1.BitString   `asn1:"optional,tag:1"`
		SubjectID  asn1.BitString   `asn1:"optional,tag:2"`
		Extensions []pkix.Extension `asn1:"optional,explicit,tag:3"`
	}
	SignatureAlgorithm pkix.AlgorithmIdentifier
	Signature          asn1.BitString
}

// parse returns a certificate, or nil if der is none.
func parse(der []byte) *parsed {
	c := &parsed{}
	if rest, err := asn1.Unmarshal(der, c); err != nil || len(rest) > 0 {
		return nil
	}
	return c
}

// key returns the public key, or nil if it is of an unknown kind.
func (c *parsed) key() any {
	key, err := x509.ParsePKIXPublicKey(c.TBS.PublicKey.Whole)
	if err != nil {
		return nil
	}
	return key
}
