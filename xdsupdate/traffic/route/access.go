// SPDX-License-Identifier: Apache-2.0

package route

import jwt "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/jwt_authn/v3"

// Cause says what kind of policy has decided.
type Cause uint8

const (
	// NoPolicy means that no policy is about the request, or that no rule that denies matches.
	NoPolicy Cause = iota
	// ByRule means that the rule By allows or denies it.
	ByRule
	// NoAllowRule means that there are ALLOW policies (Policies), and that no rule of theirs matches.
	NoAllowRule
	// BadToken means that the token is not valid. Text says why.
	BadToken
	// NoCertificate means that the connection needs a certificate, and the client has none.
	NoCertificate
)

// Access is the result of the policies of a filter chain: of the TLS handshake, of
// RequestAuthentications and of AuthorizationPolicies.
type Access struct {
	// Allowed says that no policy denies the request. The providers in Asked may still deny it.
	Allowed bool
	Cause   Cause
	// By is the rule that decides, and zero if none does. Policy is its name in the filter, as in
	// Envoy's logs.
	By     Origin
	Policy string
	// Policies are the names of all policies of a filter, for the cause NoAllowRule.
	Policies []string
	// Provider is the rule for the issuer of a refused token, or nil. Text says why a token is
	// refused.
	Provider *jwt.JwtProvider
	status   int // of a refused token
	Text     string
	// Identity is the identity of the caller for policies, and Token the principal of the verified
	// token, "issuer/subject".
	Identity, Token string
	// Claims are the claims of the verified token as policies and routes see them.
	Claims map[string]any
	// Asked are the extension providers that must be asked, in order. Their answers are unknown
	// here: a host that cannot ask them has to deny the request.
	Asked []Asked
	// Audited are the names of the AUDIT policies that match, only the first of each filter.
	Audited []string
	// DryRun are the results of policies in dry-run mode.
	DryRun []DryRun
	// Unknown are the attributes, such as "source.ip", that rules need and the request does not
	// have, sorted. An unknown attribute matches no rule.
	Unknown []string
}

// Asked is an extension provider to ask, and the name of the policy that asks it.
type Asked struct{ Provider, Policy string }

// DryRun is the result of the dry-run policies of one action. Policy is the name of the one that
// matches, or "".
type DryRun struct {
	Allows bool
	Policy string
}
