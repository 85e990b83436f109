// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	rbacv3 "github.com/envoyproxy/go-control-plane/envoy/config/rbac/v3"
	jwt "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/jwt_authn/v3"
	"google.golang.org/protobuf/proto"
	security "istio.io/api/security/v1beta1"

	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/internal/jwtauthn"
	"github.com/pilotkit/pilotkit/internal/rbac"
)

// authorizationNamed returns the named AuthorizationPolicy, or nil.
func (x *index) authorizationNamed(name objectName) *authorizationPolicy {
	of := x.authorizations.in(name.namespace)
	if i := slices.IndexFunc(of, func(a *authorizationPolicy) bool { return a.objectName == name }); i >= 0 {
		return of[i]
	}
	return nil
}

// ruleOf returns the policy rule behind an RBAC policy name. The result is zero for other names.
func (d *deciding) ruleOf(name string) PolicyRule {
	namespace, policy, rule, ok := rbac.ParsePolicyName(name)
	if !ok {
		return PolicyRule{}
	}
	of := objectName{namespace, policy}
	out := PolicyRule{Kind: istio.AuthorizationPolicy.Kind, Name: of.String()}
	switch a := d.authorizationNamed(of); {
	case a == nil:
	case len(a.unread) > 0:
		out.Rule = a.unread[0].Field
	case rule < len(a.spec.GetRules()):
		out.Rule = element("spec.rules", rule)
	}
	return out
}

// policiesOf returns the names of the AuthorizationPolicies behind RBAC rules.
func (d *deciding) policiesOf(rules *rbacv3.RBAC) string {
	var out []string
	for name := range rules.GetPolicies() {
		if of := d.ruleOf(name).Name; of != "" {
			out = append(out, of)
		}
	}
	slices.Sort(out)
	return strings.Join(slices.Compact(out), ", ")
}

// whyDenied returns the policy rule behind the RBAC policy that denies a call, and the reason in
// words.
func (d *deciding) whyDenied(name string) (by PolicyRule, reason string) {
	for _, prefix := range []string{leftOutTokens, refusedTokens} {
		if of, ok := strings.CutPrefix(name, prefix); ok {
			return PolicyRule{Kind: istio.RequestAuthentication.Kind, Name: of}, "all requests are denied, because a rule cannot be read or sent"
		}
	}
	namespace, policy, _, ok := rbac.ParsePolicyName(name)
	if !ok {
		return PolicyRule{}, "all calls are denied, because the policies cannot be sent"
	}
	by, reason = d.ruleOf(name), "a rule denies it"
	switch a := d.authorizationNamed(objectName{namespace, policy}); {
	case a == nil:
	case len(a.unread) > 0:
		reason = "the policy denies everything: " + a.unread[0].String()
	case a.spec.GetAction() == security.AuthorizationPolicy_CUSTOM && d.proxy.role == router:
		reason = fmt.Sprintf("a rule matches, and the provider %q cannot be asked", a.spec.GetProvider().GetName())
	case a.spec.GetAction() == security.AuthorizationPolicy_CUSTOM:
		reason = fmt.Sprintf("a rule matches, and a gRPC server cannot ask the provider %q", a.spec.GetProvider().GetName())
	}
	return by, reason
}

// tokens evaluates the filter of RequestAuthentications.
func (d *deciding) tokens(config *jwt.JwtAuthentication) (refused bool) {
	switch {
	case jwtauthn.Bypasses(config, d.call.Method, d.call.Headers):
		return false
	case d.call.InvalidToken:
		d.refuse(status(http.StatusUnauthorized), PolicyRule{}, "the token is not valid, and there are RequestAuthentications")
		return true
	case d.call.Claims == nil:
		return false
	}
	taken, known, why := jwtauthn.Verify(config, d.call.Claims, time.Now())
	if why != nil {
		d.refuse(status(why.Status), d.tokenRuleOf(why.Provider), why.Reason)
		return true
	}
	d.claims = known
	d.see.Note(jwtauthn.Filter, jwtauthn.Payload, known)
	subject, _ := d.call.Claims["sub"].(string)
	d.out.Token = taken.GetIssuer() + "/" + subject
	return false
}

// tokenRuleOf returns the JWT rule behind a provider. The result is zero for nil.
func (d *deciding) tokenRuleOf(provider *jwt.JwtProvider) PolicyRule {
	if provider == nil {
		return PolicyRule{}
	}
	for _, a := range d.requestAuthenticationsOf(d.proxy) {
		for i, r := range a.rules {
			if proto.Equal(jwtauthn.Provider(r.Rule), provider) {
				return PolicyRule{istio.RequestAuthentication.Kind, a.String(), element("spec.jwtRules", i)}
			}
		}
	}
	return PolicyRule{}
}
