// SPDX-License-Identifier: Apache-2.0

// Package fingerprint says which texts are hashes of certificates and keys for Envoy,
// which refuses a whole listener or cluster over another one.
package fingerprint

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"strings"
)

// Is reports whether a text is the SHA-256 hash of a certificate in hexadecimal, with
// colons between all its bytes or without any.
func Is(text string) bool {
	digits := text
	if len(text) == 3*sha256.Size-1 {
		for i := 2; i < len(text); i += 3 {
			if text[i] != ':' {
				return false
			}
		}
		digits = strings.ReplaceAll(text, ":", "")
	}
	sum, err := hex.DecodeString(digits)
	return err == nil && len(sum) == sha256.Size
}

// IsSPKI reports whether a text is the SHA-256 hash of a public key in base64.
func IsSPKI(text string) bool {
	sum, err := base64.StdEncoding.Strict().DecodeString(text)
	return err == nil && len(sum) == sha256.Size && len(text) == base64.StdEncoding.EncodedLen(sha256.Size)
}
