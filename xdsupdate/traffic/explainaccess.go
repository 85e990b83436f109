// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	jwt "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/jwt_authn/v3"
	"google.golang.org/protobuf/proto"
	security "istio.io/api/security/v1beta1"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/internal/jwtauthn"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/objects"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/rbac"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/route"
)

// decider describes the demand for mutual TLS, because a filter chain does not name its reason: the
// rule that demands it, and words for it.
type decider struct {
	by     PolicyRule
	mutual string
}

// decided records the decision of the policies, and the outcome if the call is denied.
func (x *explaining) decided(d route.Decision, mutual decider, problems []error) {
	a := d.Access
	out := &Decision{
		Allowed: d.Access.Allowed && d.Reason != route.BadRequest && d.Reason != route.Unsupported,
		Reason:  noPolicy, Identity: a.Identity, Token: a.Token, Unknown: a.Unknown,
	}
	switch {
	case d.Reason == route.LeftOut:
		out.Reason = "all connections are closed, because what serves them cannot be sent"
	case d.Reason == route.BadRequest:
		out.Reason = "the gateway takes no such path"
	case d.Reason == route.Unsupported:
		out.Reason = d.Detail
	case a.Cause == route.NoCertificate:
		out.By, out.Reason = mutual.by, mutual.mutual
	case a.Cause == route.BadToken:
		out.By, out.Reason = x.tokenRuleOf(a.Provider), a.Text
	case a.Cause == route.NoAllowRule:
		out.Reason = fmt.Sprintf("there are ALLOW policies (%s), and none of their rules matches", x.policyNames(a.Policies))
	case a.Cause == route.ByRule && a.Allowed:
		out.By, out.Reason = x.policyRule(a.Policy), "a rule allows it"
	case a.Cause == route.ByRule:
		out.By, out.Reason = x.whyDenied(a.Policy)
	}
	for _, p := range a.Asked {
		out.Providers = append(out.Providers, AskedProvider{p.Provider, x.policyRule(p.Policy)})
	}
	for _, policy := range a.Audited {
		out.Audited = append(out.Audited, x.policyRule(policy))
	}
	for _, dry := range a.DryRun {
		out.DryRun = append(out.DryRun, DryRunDecision{dry.Allows, x.policyRule(dry.Policy)})
	}
	for _, err := range problems {
		out.Problems = append(out.Problems, err.Error())
	}
	x.out.Decision = out
	if !out.Allowed {
		out.Answer = x.answer(d)
		x.out.Outcome = fmt.Sprintf("refused (%s): %s", out.Answer, out.Reason)
	}
}

// answer returns the answer to a denied call.
func (x *explaining) answer(d route.Decision) string {
	switch {
	case d.Outcome == route.Closed:
		return AnswerClosed
	case x.proxy.Role == objects.GRPCClient:
		return AnswerPermissionDenied
	default:
		return strconv.Itoa(d.Status)
	}
}

// policyRule returns the policy rule behind an RBAC policy name. The result is zero for other names.
func (x *explaining) policyRule(name string) PolicyRule {
	namespace, policy, rule, ok := rbac.ParsePolicyName(name)
	if !ok {
		return PolicyRule{}
	}
	of := objects.ObjectName{Namespace: namespace, Name: policy}
	out := PolicyRule{Kind: istio.AuthorizationPolicy.Kind, Name: of.String()}
	switch a := objects.Named[*objects.AuthorizationPolicy](x.Index, istio.AuthorizationPolicy, of); {
	case a == nil:
	case len(a.Unread) > 0:
		out.Rule = a.Unread[0].Field
	case rule < len(a.Spec.GetRules()):
		out.Rule = objects.Element("spec.rules", rule)
	}
	return out
}

// policyNames returns the names of the AuthorizationPolicies behind RBAC policies.
func (x *explaining) policyNames(policies []string) string {
	var out []string
	for _, name := range policies {
		if of := x.policyRule(name).Name; of != "" {
			out = append(out, of)
		}
	}
	slices.Sort(out)
	return strings.Join(slices.Compact(out), ", ")
}

// whyDenied returns the policy rule behind the RBAC policy that denies a call, and the reason in
// words.
func (x *explaining) whyDenied(name string) (by PolicyRule, reason string) {
	for _, prefix := range []string{leftOutTokens, refusedTokens} {
		if of, ok := strings.CutPrefix(name, prefix); ok {
			return PolicyRule{Kind: istio.RequestAuthentication.Kind, Name: of}, "all requests are denied, because a rule cannot be read or sent"
		}
	}
	namespace, policy, _, ok := rbac.ParsePolicyName(name)
	if !ok {
		return PolicyRule{}, "all calls are denied, because the policies cannot be sent"
	}
	by, reason = x.policyRule(name), "a rule denies it"
	switch a := objects.Named[*objects.AuthorizationPolicy](x.Index, istio.AuthorizationPolicy, objects.ObjectName{Namespace: namespace, Name: policy}); {
	case a == nil:
	case len(a.Unread) > 0:
		reason = "the policy denies everything: " + a.Unread[0].String()
	case a.Spec.GetAction() == security.AuthorizationPolicy_CUSTOM && x.proxy.Role == objects.Router:
		reason = fmt.Sprintf("a rule matches, and the provider %q cannot be asked", a.Spec.GetProvider().GetName())
	case a.Spec.GetAction() == security.AuthorizationPolicy_CUSTOM:
		reason = fmt.Sprintf("a rule matches, and a gRPC server cannot ask the provider %q", a.Spec.GetProvider().GetName())
	}
	return by, reason
}

// tokenRuleOf returns the JWT rule behind a provider. The result is zero for nil.
func (x *explaining) tokenRuleOf(provider *jwt.JwtProvider) PolicyRule {
	if provider == nil {
		return PolicyRule{}
	}
	for _, a := range x.RequestAuthenticationsOf(&x.proxy.Proxy) {
		for i, r := range a.Rules {
			if proto.Equal(jwtauthn.Provider(r.Rule), provider) {
				return PolicyRule{istio.RequestAuthentication.Kind, a.String(), objects.Element("spec.jwtRules", i)}
			}
		}
	}
	return PolicyRule{}
}

// listenerLeftOut is an object that is left out of a connected proxy's listener, because the proxy
// rejects the listener with the object or because the listener cannot be built with it.
type listenerLeftOut struct {
	listener string
	object   configstore.ConfigKey
	problem  error
}

// listenersLeftOut returns the distinct objects that are left out of listeners in a view.
func (p *Policies) listenersLeftOut(view ads.View) (out []listenerLeftOut) {
	_, faults := p.connected()
	for _, f := range faults {
		known := func(have listenerLeftOut) bool { return have.listener == f.Name && have.object == f.Object }
		if f.View != view || f.TypeURL != envoy.ListenerType || f.Object == (configstore.ConfigKey{}) || slices.ContainsFunc(out, known) {
			continue
		}
		out = append(out, listenerLeftOut{f.Name, f.Object, fmt.Errorf("%s is left out of listener %s for %s: %s", f.Object, f.Name, f.Proxy, f.Text)})
	}
	return out
}

// without returns the proxy with the objects left out that its selected listeners lack, and an
// error for each of these objects.
func (x *explaining) without(is func(listener string) bool) (*proxy, []error) {
	var left []configstore.ConfigKey
	var problems []error
	for _, l := range x.leftOut {
		if is(l.listener) {
			left, problems = append(left, l.object), append(problems, l.problem)
		}
	}
	if len(left) == 0 {
		return x.proxy, nil
	}
	of := *x.proxy
	of.leaving = &leaving{
		out: func(c ads.Contribution) ads.Omission {
			if slices.Contains(left, c.Object) {
				return ads.Failing // The names of deeper omissions explain nothing.
			}
			return ads.Included
		},
		known: make(map[ads.Contribution]ads.Omission),
	}
	return &of, problems
}
