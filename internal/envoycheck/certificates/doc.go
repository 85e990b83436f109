// SPDX-License-Identifier: Apache-2.0

// Package certificates checks whether Envoys accept certificates, keys, authorities and revocation
// lists. All functions are pure.
package certificates
