// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"fmt"
	"maps"
	"strconv"
	"strings"

	rbacv3 "github.com/envoyproxy/go-control-plane/envoy/config/rbac/v3"
	httprbac "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/rbac/v3"
	tcprbac "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/rbac/v3"
	"go.uber.org/atomic"
	"google.golang.org/protobuf/proto"
	security "istio.io/api/security/v1beta1"
)

// Policy is an AuthorizationPolicy.
type Policy struct {
	Namespace, Name string
	Spec            *security.AuthorizationPolicy
	// DryRun is set if decisions are only logged and counted, but not enforced.
	DryRun bool
	// Closed is set if the policy cannot be sent. It allows nothing, or denies everything.
	Closed bool
	// Kept caches the translations for all workloads of the policy. If nil, they are not cached.
	Kept *Translations
}

// Translations caches the translations of a policy for each form, with verified and with unverified
// identities, by Translators with the same Trust and Check. The zero value is ready to use. It is
// safe for concurrent use.
type Translations [2 * forms]atomic.Pointer[translatedPolicy]

// translatedPolicy contains the Envoy policies of a policy, by name, and its problems. It is
// immutable.
type translatedPolicy struct {
	policies map[string]*rbacv3.Policy
	problems []Problem
}

// Rules are the policies of one action for one Form.
type Rules struct {
	Action security.AuthorizationPolicy_Action
	// Enforced contains the enforced policies, and DryRun the dry-run policies; nil if there are
	// none.
	Enforced, DryRun *rbacv3.RBAC
}

// Translator translates policies.
type Translator struct {
	Form  Form
	Trust Trust
	// Unverified is set if client certificates are not verified, so that clients have no identity.
	Unverified bool
	// Check returns the reason why a part of a rule cannot be sent. If nil, everything can.
	Check func(proto.Message) error
	// Problem is called for each part of a policy that cannot be checked. If nil, problems are
	// dropped.
	Problem func(Policy, Problem)
}

// Rules translates the policies of one action.
func (t Translator) Rules(action security.AuthorizationPolicy_Action, policies []Policy) Rules {
	out := Rules{Action: action}
	for _, p := range policies {
		if p.Spec.GetAction() != action {
			continue
		}
		into := &out.Enforced
		if p.DryRun {
			into = &out.DryRun
		}
		if *into == nil {
			*into = &rbacv3.RBAC{Action: actionOf(action), Policies: make(map[string]*rbacv3.Policy)}
		}
		maps.Copy((*into).Policies, t.policies(p))
	}
	return out
}

// actionOf returns Envoy's action for the matches of an action's policies. The matches of CUSTOM
// policies are denied, or decided by a provider.
func actionOf(a security.AuthorizationPolicy_Action) rbacv3.RBAC_Action {
	switch a {
	case security.AuthorizationPolicy_ALLOW:
		return rbacv3.RBAC_ALLOW
	case security.AuthorizationPolicy_AUDIT:
		return rbacv3.RBAC_LOG
	default:
		return rbacv3.RBAC_DENY
	}
}

// policies returns the Envoy policies of a policy, by name. The caller does not modify them.
func (t Translator) policies(p Policy) map[string]*rbacv3.Policy {
	switch {
	case len(p.Spec.GetRules()) == 0 && !p.Closed, p.Closed && p.Spec.GetAction() == security.AuthorizationPolicy_ALLOW:
		return map[string]*rbacv3.Policy{policyName(p, 0): nothing()}
	case p.Closed:
		return map[string]*rbacv3.Policy{policyName(p, 0): everything()}
	}
	out := t.kept(p)
	if t.Problem != nil {
		for _, problem := range out.problems {
			t.Problem(p, problem)
		}
	}
	return out.policies
}

// kept returns the translation of a policy with rules, and caches it if the policy has a cache.
func (t Translator) kept(p Policy) *translatedPolicy {
	if p.Kept == nil {
		return t.translate(p)
	}
	place := &p.Kept[t.place()]
	out := place.Load()
	if out == nil {
		out = t.translate(p)
		place.Store(out)
	}
	return out
}

// place returns the index of the translation in Translations.
func (t Translator) place() Form {
	if t.Unverified {
		return forms + t.Form
	}
	return t.Form
}

func (t Translator) translate(p Policy) *translatedPolicy {
	out := &translatedPolicy{policies: make(map[string]*rbacv3.Policy, len(p.Spec.GetRules()))}
	for i, rule := range p.Spec.GetRules() {
		if policy := t.rule(p, i, rule, out); policy != nil {
			out.policies[policyName(p, i)] = policy
		}
	}
	return out
}

// rule translates a rule and adds its problems. It returns nil if the rule allows nothing.
func (t Translator) rule(p Policy, i int, rule *security.Rule, out *translatedPolicy) *rbacv3.Policy {
	allows := p.Spec.GetAction() == security.AuthorizationPolicy_ALLOW
	one := &translation{form: t.Form, trust: t.Trust, unverified: t.Unverified, namespace: p.Namespace, rule: i, strict: allows}
	policy := one.policy(rule)
	if policy != nil && t.Check != nil {
		if err := t.Check(policy); err != nil {
			one.problem("", err)
			if policy = everything(); allows {
				policy = nil
			}
		}
	}
	out.problems = append(out.problems, one.problems...)
	return policy
}

// nothing returns a policy that never matches.
func nothing() *rbacv3.Policy {
	return &rbacv3.Policy{
		Permissions: []*rbacv3.Permission{permissions().nothing()},
		Principals:  []*rbacv3.Principal{principals().nothing()},
	}
}

// everything returns a policy that always matches.
func everything() *rbacv3.Policy {
	return &rbacv3.Policy{
		Permissions: []*rbacv3.Permission{permissions().everything()},
		Principals:  []*rbacv3.Principal{principals().everything()},
	}
}

// The names of the filters.
const (
	HTTPFilter = "envoy.filters.http.rbac"
	TCPFilter  = "envoy.filters.network.rbac"
)

// The prefixes of the statistics for decisions of dry-run policies.
const (
	dryRunAllow = "istio_dry_run_allow_"
	dryRunDeny  = "istio_dry_run_deny_"
)

// Empty reports whether there is nothing to check.
func (r Rules) Empty() bool { return r.Enforced == nil && r.DryRun == nil }

// HTTP returns the configuration of the filter for requests.
func (r Rules) HTTP() *httprbac.RBAC {
	return &httprbac.RBAC{Rules: r.Enforced, ShadowRules: r.DryRun, ShadowRulesStatPrefix: r.dryRunPrefix()}
}

// TCP returns the configuration of the filter for connections.
func (r Rules) TCP() *tcprbac.RBAC {
	return &tcprbac.RBAC{Rules: r.Enforced, ShadowRules: r.DryRun, StatPrefix: "tcp.", ShadowRulesStatPrefix: r.dryRunPrefix()}
}

// dryRunPrefix returns the prefix of the statistics for decisions of dry-run policies.
func (r Rules) dryRunPrefix() string {
	switch {
	case r.DryRun == nil:
		return ""
	case r.Action == security.AuthorizationPolicy_ALLOW:
		return dryRunAllow
	case r.Action == security.AuthorizationPolicy_CUSTOM:
		return matchedPrefix
	default:
		return dryRunDeny
	}
}

// DenyAll returns the configuration of a filter that denies every request. The name identifies the
// cause.
func DenyAll(name string) *httprbac.RBAC {
	return &httprbac.RBAC{Rules: &rbacv3.RBAC{
		Action: rbacv3.RBAC_DENY, Policies: map[string]*rbacv3.Policy{name: everything()},
	}}
}

// policyName returns the name of a rule's Envoy policy, which appears in Envoy's logs.
func policyName(p Policy, rule int) string {
	return fmt.Sprintf("ns[%s]-policy[%s]-rule[%d]", p.Namespace, p.Name, rule)
}

// ParsePolicyName returns the policy and the rule of an Envoy policy, by a name of a Translator. ok
// is false for other names. A policy without rules, or with Closed, has one Envoy policy with the
// index 0.
func ParsePolicyName(name string) (namespace, policy string, rule int, ok bool) {
	at := strings.LastIndex(name, "ns[") // Custom prepends the prefix of the provider
	if at < 0 {
		return "", "", 0, false
	}
	namespace, rest, _ := strings.Cut(strings.TrimSuffix(name[at+len("ns["):], refusedSuffix), "]-policy[")
	policy, index, ok := strings.Cut(rest, "]-rule[")
	rule, err := strconv.Atoi(strings.TrimSuffix(index, "]"))
	return namespace, policy, rule, ok && err == nil
}

// IsDryRun reports whether shadow rules belong to dry-run policies, by the prefix of their
// statistics.
func IsDryRun(prefix string) bool { return prefix == dryRunAllow || prefix == dryRunDeny }

// AskedProvider returns the provider that decides about a call, by the name of the policy that the
// filter in shadow mode has matched (MatchedKey).
func AskedProvider(policy string) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(policy, providerPrefix), "-ns[")
	return name
}

// MatchedKey returns the key of the metadata in which a filter in shadow mode records the policy that
// matches, by the prefix of its statistics.
func MatchedKey(prefix string) string { return prefix + matchedKey }

// ProviderKey returns the MatchedKey of the policies that ask providers.
func ProviderKey() string { return MatchedKey(matchedPrefix) }
