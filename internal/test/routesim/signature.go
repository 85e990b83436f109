// SPDX-License-Identifier: Apache-2.0

package routesim

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"math/big"
	"strings"
)

// jsonWebToken is a signed token (RFC 7515, RFC 7519) as it is read before it is verified.
type jsonWebToken struct {
	text, key string // key is the name of the one that it says it was signed with
	issuer    string
	audiences []string
	claims    map[string]any
	// expires and begins are in seconds, if it says so.
	expires, begins *float64
}

var errNoToken = errors.New("it is no token signed by ES256")

// parseToken reads a token. Of algorithms ES256 alone is known here.
func parseToken(text string) (*jsonWebToken, error) {
	parts := strings.Split(text, ".")
	var header struct{ Alg, Kid string }
	t := &jsonWebToken{text: text}
	if len(parts) != 3 || decodePart(parts[0], &header) != nil || decodePart(parts[1], &t.claims) != nil || header.Alg != "ES256" {
		return nil, errNoToken
	}
	for _, name := range []string{"iss", "sub", "jti"} {
		if _, is := t.claims[name].(string); t.claims[name] != nil && !is {
			return nil, errNoToken
		}
	}
	t.key = header.Kid
	t.issuer, _ = t.claims["iss"].(string)
	switch aud := t.claims["aud"].(type) {
	case string:
		t.audiences = []string{aud}
	case []any:
		for _, one := range aud {
			text, _ := one.(string)
			t.audiences = append(t.audiences, text)
		}
	}
	if n, ok := t.claims["exp"].(float64); ok {
		t.expires = &n
	}
	if n, ok := t.claims["nbf"].(float64); ok {
		t.begins = &n
	}
	return t, nil
}

func decodePart(part string, into any) error {
	data, err := base64.RawURLEncoding.DecodeString(part)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, into)
}

// Signatures remembers which keys have signed which tokens, for all gates that have it. It is for one
// goroutine.
type Signatures struct{ known map[[2]string]bool }

// by reports whether one of the keys of a JSON Web Key Set has signed a token.
func (s *Signatures) by(keys string, t *jsonWebToken) bool {
	if s == nil {
		return signedBy(keys, t)
	}
	if s.known == nil {
		s.known = make(map[[2]string]bool)
	}
	at := [2]string{keys, t.text}
	signed, ok := s.known[at]
	if !ok {
		signed = signedBy(keys, t)
		s.known[at] = signed
	}
	return signed
}

func signedBy(keys string, t *jsonWebToken) bool {
	var set struct {
		Keys []struct{ Kty, Crv, Kid, X, Y string }
	}
	if json.Unmarshal([]byte(keys), &set) != nil {
		return false
	}
	signed, encoded := t.text[:strings.LastIndexByte(t.text, '.')], t.text[strings.LastIndexByte(t.text, '.')+1:]
	signature, err := base64.RawURLEncoding.DecodeString(encoded)
	if err != nil || len(signature) != 64 {
		return false
	}
	hash := sha256.Sum256([]byte(signed))
	for _, k := range set.Keys {
		if k.Kty != "EC" || k.Crv != "P-256" || k.Kid != "" && t.key != "" && k.Kid != t.key {
			continue
		}
		x, errX := base64.RawURLEncoding.DecodeString(k.X)
		y, errY := base64.RawURLEncoding.DecodeString(k.Y)
		if errX != nil || errY != nil {
			continue
		}
		public, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), append(append([]byte{4}, x...), y...))
		if err == nil && ecdsa.Verify(public, hash[:], new(big.Int).SetBytes(signature[:32]), new(big.Int).SetBytes(signature[32:])) {
			return true
		}
	}
	return false
}
