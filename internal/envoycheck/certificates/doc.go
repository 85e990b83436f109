// SPDX-License-Identifier: Apache-2.0

// Package certificates knows which certificates, keys, authorities and revocation lists Envoy accepts.
// All functions are pure.
package certificates
