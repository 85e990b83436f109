// SPDX-License-Identifier: Apache-2.0

package debug

import (
	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
)

// decisionRow is the decision of policies about a call: see traffic.Decision.
type decisionRow struct {
	Allowed bool        `json:"allowed"`
	Answer  string      `json:"answer,omitempty"`
	By      *policyRule `json:"by,omitempty"`
	Reason  string      `json:"reason"`
	// Identity and Token identify the caller to policies; empty if the caller is not authenticated.
	Identity  string          `json:"identity,omitempty"`
	Token     string          `json:"token,omitempty"`
	Providers []askedProvider `json:"providers,omitempty"`
	Audited   []policyRule    `json:"audited,omitempty"`
	DryRun    []dryRunRow     `json:"dry_run,omitempty"`
	Unknown   []string        `json:"unknown,omitempty"`
	Problems  []string        `json:"problems,omitempty"`
}

// policyRule is a rule of a policy.
type policyRule struct {
	Kind string `json:"kind"`
	Name string `json:"name"` // "namespace/name"
	Rule string `json:"rule,omitempty"`
}

type askedProvider struct {
	Name string      `json:"name"`
	By   *policyRule `json:"by,omitempty"`
}

type dryRunRow struct {
	Allows bool        `json:"allows"`
	By     *policyRule `json:"by,omitempty"`
}

// decisionRowOf returns a decision as a row, nil for nil.
func decisionRowOf(d *traffic.Decision) *decisionRow {
	if d == nil {
		return nil
	}
	out := &decisionRow{
		Allowed: d.Allowed, Answer: d.Answer, By: ruleRowOf(d.By), Reason: redactText(d.Reason), Identity: d.Identity, Token: d.Token, Unknown: d.Unknown,
	}
	for _, p := range d.Providers {
		out.Providers = append(out.Providers, askedProvider{p.Name, ruleRowOf(p.By)})
	}
	for _, a := range d.Audited {
		out.Audited = append(out.Audited, policyRule(a))
	}
	for _, t := range d.DryRun {
		out.DryRun = append(out.DryRun, dryRunRow{t.Allows, ruleRowOf(t.By)})
	}
	for _, p := range d.Problems[:min(len(d.Problems), defaultLimit)] {
		out.Problems = append(out.Problems, redactText(p))
	}
	return out
}

// ruleRowOf returns a rule as a row, nil for the zero rule.
func ruleRowOf(r traffic.PolicyRule) *policyRule {
	if r == (traffic.PolicyRule{}) {
		return nil
	}
	out := policyRule(r)
	return &out
}

// kind returns the kind of the policy, false if the rule belongs to no policy.
func (r *policyRule) kind() (configstore.GroupVersionKind, bool) {
	for _, kind := range []configstore.GroupVersionKind{istio.AuthorizationPolicy, istio.RequestAuthentication, istio.PeerAuthentication} {
		if kind.Kind == r.Kind {
			return kind, true
		}
	}
	return configstore.GroupVersionKind{}, false
}
