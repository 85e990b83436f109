// SPDX-License-Identifier: Apache-2.0

package keyset

import (
	"crypto/ecdh"
	"encoding/base64"
	"math/big"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/structpb"
)

// Usable reports whether Envoy can use a key of a set (Envoy 1.40, jwt_verify_lib). Envoy ignores keys
// that it cannot use, but rejects a listener with a set of only such keys.
func Usable(set string) bool {
	var root structpb.Struct // as in Envoy, no member may be there twice
	if protojson.Unmarshal([]byte(set), &root) != nil {
		return false
	}
	return slices.ContainsFunc(root.GetFields()["keys"].GetListValue().GetValues(), func(key *structpb.Value) bool {
		return usable(key.GetStructValue().GetFields())
	})
}

// curve is an elliptic curve of Envoy, with the algorithm of its keys and the size of coordinates.
type curve struct {
	ecdh.Curve
	algorithm string
	size      int
}

func curveOf(name string) (c curve, ok bool) {
	switch name {
	case "", "P-256":
		return curve{ecdh.P256(), "ES256", 32}, true
	case "P-384":
		return curve{ecdh.P384(), "ES384", 48}, true
	case "P-521":
		return curve{ecdh.P521(), "ES512", 66}, true
	default:
		return curve{}, false
	}
}

func usable(key map[string]*structpb.Value) bool {
	text := func(name string) string { return key[name].GetStringValue() }
	number := func(name string) *big.Int { return new(big.Int).SetBytes(decoded(text(name))) }
	algorithm := text("alg")
	switch text("kty") {
	case "RSA":
		n, e := number("n"), number("e")
		known := algorithm == "" || strings.HasPrefix(algorithm, "RS") || strings.HasPrefix(algorithm, "PS")
		return known && n.BitLen() >= 512 && n.BitLen() <= 16384 && n.Bit(0) == 1 && e.IsUint64() && (e.Uint64() == 3 || e.Uint64() == 65537)
	case "EC":
		c, ok := curveOf(text("crv"))
		x, y := number("x"), number("y")
		if !ok || algorithm != "" && algorithm != c.algorithm || max(x.BitLen(), y.BitLen()) > 8*c.size {
			return false
		}
		point := make([]byte, 1+2*c.size)
		point[0] = 4 // uncompressed
		x.FillBytes(point[1 : 1+c.size])
		y.FillBytes(point[1+c.size:])
		_, err := c.NewPublicKey(point)
		return err == nil
	case "OKP":
		return text("crv") == "Ed25519" && (algorithm == "" || algorithm == "EdDSA") && len(decoded(text("x"))) == 32
	default:
		return false
	}
}

// decoded decodes Base64 with the alphabet of URLs, with or without padding. It returns nothing for other
// texts.
func decoded(s string) []byte {
	encoding := base64.RawURLEncoding
	if strings.HasSuffix(s, "=") {
		encoding = base64.URLEncoding
	}
	out, err := encoding.DecodeString(s)
	if err != nil {
		return nil
	}
	return out
}
