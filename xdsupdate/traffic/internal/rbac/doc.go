// SPDX-License-Identifier: Apache-2.0

// Package rbac translates AuthorizationPolicies into Envoy's role based access control: conditions
// on identities, addresses, tokens and headers become principals, conditions on operations become
// permissions. The behaviour is that of Istio 1.30 unless a comment says otherwise.
//
// It fails closed. Some rules cannot be checked, because a TCP connection has no path or a value is
// invalid. Such a rule of an ALLOW policy allows nothing. In any other policy the part that cannot
// be checked is dropped, so that the rule denies more. All such parts are reported.
//
// # Concurrency
//
// The functions are pure. The caller owns their results.
package rbac
