// SPDX-License-Identifier: Apache-2.0

package jwtauthn

// NobodysKeys is a key set that verifies no token, because its private key is unknown (S72). Its
// key is a point of the curve P-256 that is derived from the hash of a text, see nobodysText.
const NobodysKeys = `{"keys":[{"kty":"EC","crv":"P-256","x":"` + nobodysX + `","y":"` + nobodysY + `"}]}`

// nobodysX is the first x coordinate of a point on the curve, counted from the SHA-256 of
// nobodysText. nobodysY is its even y coordinate.
const (
	nobodysText = "no private key is known"
	nobodysX    = "d_-aJNmzQwpD-ejhUuMcYNKTzQXwmynSir_iV9xxY6s"
	nobodysY    = "_UhbXXUVDF6Cp2iV3Ckd2UG0cHHkSH7MqhQ3YIpnid4"
)
