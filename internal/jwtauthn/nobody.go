// SPDX-License-Identifier: Apache-2.0

package jwtauthn

// NobodysKeys is a key set that verifies no token, as nobody has the private key (S72): its key is the point of
// the curve P-256 that the hash of a text leads to, see nobodysText.
const NobodysKeys = `{"keys":[{"kty":"EC","crv":"P-256","x":"` + nobodysX + `","y":"` + nobodysY + `"}]}`

// nobodysX is the first x for which there is a point, from the SHA-256 of nobodysText on; nobodysY is the even y of it.
const (
	nobodysText = "no private key is known"
	nobodysX    = "d_-aJNmzQwpD-ejhUuMcYNKTzQXwmynSir_iV9xxY6s"
	nobodysY    = "_UhbXXUVDF6Cp2iV3Ckd2UG0cHHkSH7MqhQ3YIpnid4"
)
