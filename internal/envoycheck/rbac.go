// SPDX-License-Identifier: Apache-2.0

package envoycheck

import (
	"strings"

	rbacv3 "github.com/envoyproxy/go-control-plane/envoy/config/rbac/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	matcher "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
)

// The rules for RBAC follow gRFC A41, as far as grpc-go, C-core 1.51 and grpc-js implement it.
// Envoys accept everything that passes the generated validation.

func (r *report) rbac(rules *rbacv3.RBAC) {
	if action := rules.GetAction(); action != rbacv3.RBAC_ALLOW && action != rbacv3.RBAC_DENY {
		r.fail("RBAC with action %v for gRPC", action)
	}
	if len(rules.GetPolicies()) == 0 {
		r.fail("RBAC without policies for gRPC")
	}
}

func (r *report) rbacPolicy(p *rbacv3.Policy) {
	if p.GetCondition() != nil || p.GetCheckedCondition() != nil {
		r.fail("RBAC with a condition for gRPC")
	}
}

// permission checks a permission without those in it.
func (r *report) permission(p *rbacv3.Permission) {
	switch m := p.GetRule().(type) {
	case *rbacv3.Permission_Header:
		r.header(m.Header)
	case *rbacv3.Permission_UrlPath:
		r.text(m.UrlPath.GetPath())
	case *rbacv3.Permission_RequestedServerName:
		r.text(m.RequestedServerName)
	case *rbacv3.Permission_AndRules, *rbacv3.Permission_OrRules, *rbacv3.Permission_NotRule, *rbacv3.Permission_Any,
		*rbacv3.Permission_DestinationIp, *rbacv3.Permission_DestinationPort, *rbacv3.Permission_Metadata:
	default:
		r.fail("a permission of type %T for gRPC", m)
	}
}

// principal checks a principal without those in it.
func (r *report) principal(p *rbacv3.Principal) {
	switch m := p.GetIdentifier().(type) {
	case *rbacv3.Principal_Header:
		r.header(m.Header)
	case *rbacv3.Principal_UrlPath:
		r.text(m.UrlPath.GetPath())
	case *rbacv3.Principal_Authenticated_:
		if name := m.Authenticated.GetPrincipalName(); name != nil {
			r.text(name)
		}
	case *rbacv3.Principal_AndIds, *rbacv3.Principal_OrIds, *rbacv3.Principal_NotId, *rbacv3.Principal_Any,
		*rbacv3.Principal_SourceIp, *rbacv3.Principal_DirectRemoteIp, *rbacv3.Principal_RemoteIp, *rbacv3.Principal_Metadata:
	default:
		r.fail("a principal of type %T for gRPC", m)
	}
}

func (r *report) header(h *routev3.HeaderMatcher) {
	name := strings.ToLower(h.GetName())
	if name == ":scheme" || name == "te" || strings.HasPrefix(name, "grpc-") {
		r.fail("RBAC with the header %s for gRPC", name)
	}
	switch m := h.GetHeaderMatchSpecifier().(type) {
	case *routev3.HeaderMatcher_ExactMatch, *routev3.HeaderMatcher_PrefixMatch, *routev3.HeaderMatcher_SuffixMatch,
		*routev3.HeaderMatcher_ContainsMatch, *routev3.HeaderMatcher_SafeRegexMatch, *routev3.HeaderMatcher_RangeMatch, *routev3.HeaderMatcher_PresentMatch:
	default:
		r.fail("RBAC with a header match of type %T for gRPC", m)
	}
}

// text checks a text matcher. Only exact and regular expression matchers may be empty.
func (r *report) text(m *matcher.StringMatcher) {
	switch p := m.GetMatchPattern().(type) {
	case *matcher.StringMatcher_Exact, *matcher.StringMatcher_SafeRegex:
	case *matcher.StringMatcher_Prefix:
		r.notEmpty(p.Prefix)
	case *matcher.StringMatcher_Suffix:
		r.notEmpty(p.Suffix)
	case *matcher.StringMatcher_Contains:
		r.notEmpty(p.Contains)
	default:
		r.fail("a string match of type %T for gRPC", p)
	}
}

func (r *report) notEmpty(text string) {
	if text == "" {
		r.fail("a string match of an empty text for gRPC")
	}
}
