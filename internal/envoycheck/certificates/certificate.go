// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"errors"
)

// The reasons why a certificate and its key are not served, in Envoy's words if it has an error for
// them. They wrap nothing, because errors of parsers may quote their input.
var (
	errChain      = errors.New("the certificate chain cannot be loaded: it must be certificates in PEM, in blocks called CERTIFICATE")
	errSmallKey   = errors.New("only RSA certificates with 2048-bit or larger keys are supported")
	errCurve      = errors.New("only P-256, P-384 or P-521 ECDSA certificates are supported")
	errPublicKey  = errors.New("only RSA, ECDSA and Ed25519 certificates are supported")
	errMustStaple = errors.New("OCSP response is required for must-staple certificate, and there is none")
	errPrivateKey = errors.New("the private key cannot be loaded: it must be in PEM, and be what its block is called: " +
		"PRIVATE KEY (PKCS 8), RSA PRIVATE KEY or EC PRIVATE KEY")
	errEncrypted = errors.New("the private key cannot be loaded: it is encrypted")
	errNoMatch   = errors.New("the certificate and the key do not belong together")
)

// CheckPair returns an error if proxies would reject a certificate chain and its key, both in PEM. Like
// proxies it skips blocks of other types, such as keys, before the block that it looks for. It is
// somewhat stricter than proxies, because some of them read certificates from blocks of other names.
func CheckPair(chain, key []byte) error {
	leaf, err := checkChain(chain)
	if err != nil {
		return err
	}
	if err := checkLeaf(leaf); err != nil {
		return err
	}
	private, err := privateKey(key)
	if err != nil {
		return err
	}
	public, ok := private.Public().(interface {
		Equal(key crypto.PublicKey) bool
	})
	if !ok || !public.Equal(leaf.key()) {
		return errNoMatch
	}
	return nil
}

// checkChain parses all certificates of a chain and returns the first.
func checkChain(chain []byte) (leaf *parsed, err error) {
	for block := range blocks(chain) {
		if block == nil || len(block.Headers) > 0 || block.Type == "X509 CERTIFICATE" || block.Type == "TRUSTED CERTIFICATE" {
			return nil, errChain
		}
		if block.Type != certificateBlock {
			continue // a key, for example
		}
		c := parse(block.Bytes)
		if c == nil {
			return nil, errChain
		}
		if leaf == nil {
			leaf = c
		}
	}
	if leaf == nil {
		return nil, errChain
	}
	return leaf, nil
}

// checkLeaf checks Envoy's requirements for the certificate of a server.
func checkLeaf(leaf *parsed) error {
	switch key := leaf.key().(type) {
	case *rsa.PublicKey:
		if key.N.BitLen() < 2048 {
			return errSmallKey
		}
	case *ecdsa.PublicKey:
		if key.Curve != elliptic.P256() && key.Curve != elliptic.P384() && key.Curve != elliptic.P521() {
			return errCurve
		}
	case ed25519.PublicKey:
	default:
		return errPublicKey
	}
	tlsFeature := asn1.ObjectIdentifier{1, 3, 6, 1, 5, 5, 7, 1, 24} // RFC 7633
	for _, extension := range leaf.TBS.Extensions {
		if extension.Id.Equal(tlsFeature) {
			return errMustStaple
		}
	}
	return nil
}

// privateKey returns the key in the first block of a type that Envoy reads as a key.
func privateKey(text []byte) (crypto.Signer, error) {
	for block := range blocks(text) {
		if block == nil {
			return nil, errPrivateKey
		}
		var key any
		var err error
		switch block.Type {
		case pkcs8Block:
		case pkcs1Block:
			key, err = x509.ParsePKCS1PrivateKey(block.Bytes)
		case sec1Block:
			key, err = x509.ParseECPrivateKey(block.Bytes)
		case "ENCRYPTED PRIVATE KEY":
			return nil, errEncrypted
		case "DSA PRIVATE KEY":
			return nil, errPrivateKey
		default:
			continue // parameters of a curve, or certificates
		}
		if len(block.Headers) > 0 {
			return nil, errEncrypted
		}
		if key == nil || err != nil {
			// Any of these block types may contain PKCS 8.
			if key, err = x509.ParsePKCS8PrivateKey(block.Bytes); err != nil {
				return nil, errPrivateKey
			}
		}
		signer, ok := key.(crypto.Signer)
		if !ok {
			return nil, errPrivateKey
		}
		return signer, nil
	}
	return nil, errPrivateKey
}

// AreAuthorities reports whether a text in PEM has certificates, and no broken blocks or blocks of
// another type.
func AreAuthorities(text []byte) bool {
	return areBlocks(text, certificateBlock, func(der []byte) bool { return parse(der) != nil })
}

// AreRevocations reports whether a text in PEM has revocation lists, and no broken blocks or blocks of
// another type.
func AreRevocations(text []byte) bool {
	return areBlocks(text, crlBlock, func(der []byte) bool {
		var list pkix.CertificateList // x509.ParseRevocationList rejects lists of version 1
		rest, err := asn1.Unmarshal(der, &list)
		return err == nil && len(rest) == 0
	})
}

func areBlocks(text []byte, kind string, isOne func(der []byte) bool) (found bool) {
	for block := range blocks(text) {
		if block == nil || block.Type != kind || len(block.Headers) > 0 || !isOne(block.Bytes) {
			return false
		}
		found = true
	}
	return found
}
