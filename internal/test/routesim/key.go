// SPDX-License-Identifier: Apache-2.0

package routesim

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
)

// Key signs tokens by ES256. Its functions panic if they fail.
type Key struct {
	ID     string
	signer *ecdsa.PrivateKey
}

// NewKey returns a new key.
func NewKey(id string) *Key {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	return &Key{id, key}
}

// Sign returns a token (RFC 7515, RFC 7519).
func (k *Key) Sign(claims map[string]any) string {
	text := TokenPart(map[string]string{"alg": "ES256", "typ": "JWT", "kid": k.ID}) + "." + TokenPart(claims)
	hash := sha256.Sum256([]byte(text))
	r, s, err := ecdsa.Sign(rand.Reader, k.signer, hash[:])
	if err != nil {
		panic(err)
	}
	return text + "." + base64.RawURLEncoding.EncodeToString(append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...))
}

// KeySet returns the JSON Web Key Set of keys (RFC 7517).
func KeySet(keys ...*Key) string {
	list := make([]map[string]string, 0, len(keys))
	for _, k := range keys {
		point, err := k.signer.PublicKey.Bytes()
		if err != nil {
			panic(err)
		}
		encode := base64.RawURLEncoding.EncodeToString
		list = append(list, map[string]string{"kty": "EC", "crv": "P-256", "alg": "ES256", "kid": k.ID, "x": encode(point[1:33]), "y": encode(point[33:])})
	}
	return string(jsonOf(map[string]any{"keys": list}))
}

// TokenPart encodes a part of a token.
func TokenPart(v any) string { return base64.RawURLEncoding.EncodeToString(jsonOf(v)) }

func jsonOf(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return data
}
