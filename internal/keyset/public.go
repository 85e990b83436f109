// SPDX-License-Identifier: Apache-2.0

package keyset

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// webKey contains the public fields of a JSON Web Key.
type webKey struct {
	Type       string   `json:"kty"`
	ID         string   `json:"kid,omitempty"`
	Use        string   `json:"use,omitempty"`
	Operations []string `json:"key_ops,omitempty"`
	Algorithm  string   `json:"alg,omitempty"`
	Curve      string   `json:"crv,omitempty"`
	X          string   `json:"x,omitempty"`
	Y          string   `json:"y,omitempty"`
	N          string   `json:"n,omitempty"`
	E          string   `json:"e,omitempty"`
}

// complete reports whether the key has the public parameters of its type. Symmetric keys have none.
func (k webKey) complete() bool {
	switch k.Type {
	case "RSA":
		return k.N != "" && k.E != ""
	case "EC":
		return k.Curve != "" && k.X != "" && k.Y != ""
	case "OKP":
		return k.Curve != "" && k.X != ""
	default:
		return false
	}
}

// public returns the public keys of a set, encoded independently of their order. It drops keys of
// other types and private parameters, because with these anybody could issue tokens. It returns an
// error if no key is left.
func public(data []byte) (string, error) {
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(data, &set); err != nil {
		return "", fmt.Errorf("it is not a JSON Web Key Set: %w", err)
	}
	var keys []string
	for _, raw := range set.Keys {
		var k webKey
		if err := json.Unmarshal(raw, &k); err != nil || !k.complete() {
			continue // RFC 7517, section 5: unknown keys are ignored
		}
		text, err := json.Marshal(k)
		if err != nil {
			continue
		}
		keys = append(keys, string(text))
	}
	if len(keys) == 0 {
		return "", errors.New("it has no public key")
	}
	slices.Sort(keys)
	return `{"keys":[` + strings.Join(slices.Compact(keys), ",") + `]}`, nil
}

// privateMembers are the parameters of a JSON Web Key that only its owner may know (RFC 7518,
// section 6).
type privateMembers struct {
	D, K, P, Q, DP, DQ, QI, Oth json.RawMessage
}

// WithoutPrivate removes private and symmetric keys from a user's set. It returns a set without
// such keys unchanged, else only the public keys, or "" if no key is left.
func WithoutPrivate(set string) string {
	var parsed struct {
		Keys []privateMembers `json:"keys"`
	}
	if json.Unmarshal([]byte(set), &parsed) != nil {
		return "" // not a key set
	}
	for _, k := range parsed.Keys {
		if len(k.D)+len(k.K)+len(k.P)+len(k.Q)+len(k.DP)+len(k.DQ)+len(k.QI)+len(k.Oth) > 0 {
			keys, _ := public([]byte(set)) // an error means that no key is left
			return keys
		}
	}
	return set
}
