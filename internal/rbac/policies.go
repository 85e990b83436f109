// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"maps"

	rbacv3 "github.com/envoyproxy/go-control-plane/envoy/config/rbac/v3"
	"go.uber.org/atomic"
	"google.golang.org/protobuf/proto"
	security "istio.io/api/security/v1beta1"
)

// Policy is an AuthorizationPolicy.
type Policy struct {
	Namespace, Name string
	Spec            *security.AuthorizationPolicy
	// DryRun: what it says is logged and counted, and nothing is refused for it.
	DryRun bool
	// Closed: what it says cannot be sent. It allows nothing, or denies everything.
	Closed bool
	// Kept keeps what it is translated to, for all workloads that it counts for; nil: nothing is kept.
	Kept *Translations
}

// Translations are what a policy is translated to in each form, for identities that are verified and for those that are not, by Translators with the same Trust and Check. The
// zero value is ready to use, by several goroutines at once.
type Translations [2 * forms]atomic.Pointer[translatedPolicy]

// translatedPolicy has the policies of Envoy that a policy becomes, by name, and its problems. It is immutable.
type translatedPolicy struct {
	policies map[string]*rbacv3.Policy
	problems []Problem
}

// Rules are the policies of one action for one Form.
type Rules struct {
	Action security.AuthorizationPolicy_Action
	// Enforced are those that count, DryRun those that are tried only; nil: there are none.
	Enforced, DryRun *rbacv3.RBAC
}

// Translator translates policies.
type Translator struct {
	Form  Form
	Trust Trust
	// Unverified: nobody verifies the certificates of clients, so that nobody has an identity.
	Unverified bool
	// Check says why a part of a rule cannot be sent; nil: everything can.
	Check func(proto.Message) error
	// Problem is called for each part of a policy that cannot be checked; nil: for none.
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

// actionOf returns what Envoy does with what the policies of an action match. What CUSTOM
// policies match is denied, or asked of a provider.
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

// policies returns those of Envoy that a policy becomes, by name. The caller does not modify them.
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

// kept returns what a policy with rules is translated to, which is kept if it has a place for that.
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

// place returns where in Translations the translation is.
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

// rule translates a rule, and adds its problems; nil: it allows nothing.
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

// nothing returns what never matches.
func nothing() *rbacv3.Policy {
	return &rbacv3.Policy{
		Permissions: []*rbacv3.Permission{permissions().not(permissions().everything())},
		Principals:  []*rbacv3.Principal{principals().not(principals().everything())},
	}
}

// everything returns what matches always.
func everything() *rbacv3.Policy {
	return &rbacv3.Policy{
		Permissions: []*rbacv3.Permission{permissions().everything()},
		Principals:  []*rbacv3.Principal{principals().everything()},
	}
}
