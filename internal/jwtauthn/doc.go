// SPDX-License-Identifier: Apache-2.0

// Package jwtauthn translates the rules of RequestAuthentications into the configuration of Envoy's
// filter that verifies JSON Web Tokens. Facts are those of Istio 1.30, unless a comment says otherwise.
//
// A request without a token passes, one with a token that is not valid is refused. What a valid token
// claims is put into the metadata of the request below Payload, where authorization and routes
// look for it.
//
// # Concurrency
//
// The functions are pure. What they return is the caller's.
package jwtauthn
