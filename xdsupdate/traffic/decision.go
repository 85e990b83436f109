// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"cmp"
	"fmt"
	"strings"
)

// Answers to denied callers (Decision.Answer), in addition to HTTP status codes such as "403".
const (
	// AnswerPermissionDenied is the status of a call that a gRPC server denies.
	AnswerPermissionDenied = "PERMISSION_DENIED"
	// AnswerClosed means that the connection is closed or the TLS handshake fails.
	AnswerClosed = "closed"
)

// noPolicy is the reason for a call that no policy applies to.
const noPolicy = "no policy is about it"

// Decision is the result of all AuthorizationPolicies, RequestAuthentications and
// PeerAuthentications for a call. It results from evaluating the listener as the client receives
// it.
type Decision struct {
	// Allowed says that no policy denies the call. The extension providers in Providers may still
	// deny it.
	Allowed bool
	// Answer is the answer to a denied caller: an HTTP status code, AnswerPermissionDenied or
	// AnswerClosed. It is empty if the call is allowed.
	Answer string
	// By is the rule that decides, or zero if no rule does.
	By PolicyRule
	// Reason describes the decision in words.
	Reason string
	// Identity is the caller's identity for policies, the principal of its certificate. It is empty
	// if policies know none.
	Identity string
	// Token is the principal of the verified token, "issuer/subject", or empty.
	Token string
	// Providers are the extension providers that CUSTOM policies ask, in order, before all later
	// steps. Their answers are unknown.
	Providers []AskedProvider
	// Audited lists the AUDIT rules that the call matches, only the first of each filter. They do
	// not affect the decision.
	Audited []PolicyRule
	// DryRun lists the results of policies in dry-run mode. They do not affect the decision.
	DryRun []DryRunDecision
	// Unknown lists the attributes, such as "source.ip", that rules evaluate and the call does not
	// specify. An unspecified attribute matches nothing, so the decision can differ for a call that
	// specifies it.
	Unknown []string
	// Problems lists the rules that deny more, or allow less, than their objects specify, with the
	// reasons.
	Problems []string
}

// PolicyRule is a rule of a policy.
type PolicyRule struct {
	// Kind is "AuthorizationPolicy", "RequestAuthentication" or "PeerAuthentication".
	Kind string
	// Name is "namespace/name".
	Name string
	// Rule is the field, such as "spec.rules[0]". It is empty for the whole object.
	Rule string
}

// AskedProvider is an extension provider that decides about a call, with the rule that asks it.
type AskedProvider struct {
	Name string
	By   PolicyRule
}

// DryRunDecision is the combined result of the dry-run policies of one action.
type DryRunDecision struct {
	// Allows says that these policies would not deny the call.
	Allows bool
	// By is the rule that matches, or zero if no ALLOW rule does.
	By PolicyRule
}

// String returns "Kind namespace/name, field", or "" for the zero rule.
func (r PolicyRule) String() string {
	if r.Kind == "" {
		return ""
	}
	out := r.Kind + " " + r.Name
	if r.Rule != "" {
		out += ", " + r.Rule
	}
	return out
}

// plain reports whether the decision has no details worth printing.
func (d *Decision) plain() bool {
	return d.Allowed && d.Reason == noPolicy && d.Identity+d.Token == "" &&
		len(d.Providers)+len(d.Audited)+len(d.DryRun)+len(d.Unknown)+len(d.Problems) == 0
}

// String returns the decision as lines of text.
func (d *Decision) String() string {
	var b strings.Builder
	d.write(linesOf(&b))
	return b.String()
}

// linesOf returns a function that writes a formatted line.
func linesOf(b *strings.Builder) func(format string, args ...any) {
	return func(format string, args ...any) { fmt.Fprintf(b, format+"\n", args...) }
}

func (d *Decision) write(line func(format string, args ...any)) {
	what := "allowed: "
	if !d.Allowed {
		what = "denied (" + d.Answer + "): "
	}
	by := ""
	if d.By != (PolicyRule{}) {
		by = " (" + d.By.String() + ")"
	}
	line("%s%s%s; identity %s, token %s", what, d.Reason, by, cmp.Or(d.Identity, "none"), cmp.Or(d.Token, "none"))
	for _, p := range d.Providers {
		line("  provider %s decides, asked by %s", p.Name, p.By)
	}
	for _, a := range d.Audited {
		line("  audited by %s", a)
	}
	for _, t := range d.DryRun {
		line("  %s", t)
	}
	if len(d.Unknown) > 0 {
		line("  the call does not say %s", strings.Join(d.Unknown, ", "))
	}
	for _, p := range d.Problems {
		line("  %s", p)
	}
}

// String returns the result in words.
func (t DryRunDecision) String() string {
	switch {
	case t.Allows && t.By == (PolicyRule{}):
		return "dry run: no DENY policy would deny it"
	case t.Allows:
		return "dry run: " + t.By.String() + " would allow it"
	case t.By == (PolicyRule{}):
		return "dry run: no ALLOW policy would allow it"
	default:
		return "dry run: " + t.By.String() + " would deny it"
	}
}
