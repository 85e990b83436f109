// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"cmp"
	"fmt"
	"strings"
)

// What refused callers are told (Decision.Answer), besides the status of an HTTP response such as "403".
const (
	// AnswerPermissionDenied is the status of a call that a gRPC server refuses.
	AnswerPermissionDenied = "PERMISSION_DENIED"
	// AnswerClosed is that the connection is closed, or the TLS handshake fails.
	AnswerClosed = "closed"
)

// noPolicy is the reason of what is allowed because nothing says otherwise.
const noPolicy = "no policy is about it"

// Decision is what AuthorizationPolicies, RequestAuthentications and PeerAuthentications make of a call. It is found by evaluating the
// listener that is sent.
type Decision struct {
	// Allowed: no policy refuses the call. Those that are in Providers may do so.
	Allowed bool
	// Answer is what a refused caller is told: the status of an HTTP response, or AnswerPermissionDenied, or
	// AnswerClosed; empty: the call is allowed.
	Answer string
	// By is the rule that decides; zero: none does.
	By PolicyRule
	// Reason says it in words.
	Reason string
	// Identity is whom policies take the caller for: the principal of its certificate; empty: nobody that they know.
	Identity string
	// Token is the principal of a token that was found good, "issuer/subject"; empty: there is none.
	Token string
	// Providers are asked by CUSTOM policies, in this order, before everything after them. What they say is not known.
	Providers []AskedProvider
	// Audited are the AUDIT policies that the call matches, the first rule of all. They refuse nothing.
	Audited []PolicyRule
	// DryRun is what policies say that are tried only. They refuse nothing.
	DryRun []DryRunDecision
	// Unknown are the attributes, such as "source.ip", that rules have asked for and the call does not say: they match
	// nothing, and if they were known the decision may be another.
	Unknown []string
	// Problems say which rules deny more, or allow less, than the objects say, and why.
	Problems []string
}

// PolicyRule is a rule of a policy.
type PolicyRule struct {
	// Kind is "AuthorizationPolicy", "RequestAuthentication" or "PeerAuthentication".
	Kind string
	// Name is "namespace/name".
	Name string
	// Rule is the field, such as "spec.rules[0]"; empty: the whole object.
	Rule string
}

// AskedProvider is an extension provider that decides about a call, and the rule because of which it is asked.
type AskedProvider struct {
	Name string
	By   PolicyRule
}

// DryRunDecision is what policies of an action say that are tried only.
type DryRunDecision struct {
	// Allows: they would not refuse the call.
	Allows bool
	// By is the rule that matches; zero: none of the ALLOW policies' does.
	By PolicyRule
}

// String returns "Kind namespace/name, field".
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

// plain reports whether there is nothing to say of the decision.
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

// linesOf returns what writes lines of text.
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

// String says it in words.
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
