// SPDX-License-Identifier: Apache-2.0

// Package jwtauthn translates the rules of RequestAuthentications into the configuration of Envoy's
// filter that verifies JSON Web Tokens. The behaviour is that of Istio 1.30 unless a comment says
// otherwise.
//
// A request without a token passes, and a request with an invalid token is rejected. The filter
// stores the claims of a valid token in the metadata of the request below Payload, where
// authorization and routes read them.
//
// # Concurrency
//
// The functions are pure. The caller owns their results.
package jwtauthn
