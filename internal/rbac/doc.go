// SPDX-License-Identifier: Apache-2.0

// Package rbac translates AuthorizationPolicies into Envoy's role based access control:
// what a policy says of identities, addresses, tokens and headers becomes principals, what it says
// of operations permissions. Facts are those of Istio 1.30, unless a comment says otherwise.
//
// It fails closed. A rule that cannot be checked where it would be, because a TCP connection has no
// path or a value cannot be understood, allows nothing if it is of an ALLOW policy. Of any
// other policy that part of the rule is left out, so that it denies more. All that is
// reported.
//
// # Concurrency
//
// The functions are pure. What they return is the caller's.
package rbac
