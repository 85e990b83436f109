// SPDX-License-Identifier: Apache-2.0

package routesim

import (
	"fmt"
	"maps"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	rbacv3 "github.com/envoyproxy/go-control-plane/envoy/config/rbac/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	template "github.com/envoyproxy/go-control-plane/envoy/extensions/path/match/uri_template/v3"
	matcher "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
)

// engine says whether rules let the call pass, and the name of the first policy that it matches.
func (v *visit) engine(rules *rbacv3.RBAC) (admitted bool, policy string, err error) {
	matched := false
	for _, name := range slices.Sorted(maps.Keys(rules.GetPolicies())) {
		if matched, err = v.policy(rules.GetPolicies()[name]); err != nil {
			return false, "", fmt.Errorf("policy %s: %w", name, err)
		}
		if matched {
			policy = name
			break
		}
	}
	switch rules.GetAction() {
	case rbacv3.RBAC_ALLOW:
		return matched, policy, nil
	case rbacv3.RBAC_DENY:
		return !matched, policy, nil
	case rbacv3.RBAC_LOG:
		return true, policy, nil
	default:
		return false, "", fmt.Errorf("action %v is not known here", rules.GetAction())
	}
}

// policy matches if one of its permissions and one of its principals do.
func (v *visit) policy(p *rbacv3.Policy) (bool, error) {
	if p.GetCondition() != nil || p.GetCheckedCondition() != nil || p.GetCelConfig() != nil {
		return false, fmt.Errorf("conditions are not known here")
	}
	permitted, err := anyOf(p.GetPermissions(), v.permission)
	if err != nil || !permitted {
		return false, err
	}
	return anyOf(p.GetPrincipals(), v.principal)
}

func anyOf[T any](list []T, is func(T) (bool, error)) (bool, error) {
	for _, one := range list {
		if matched, err := is(one); matched || err != nil {
			return matched, err
		}
	}
	return false, nil
}

func allOf[T any](list []T, is func(T) (bool, error)) (bool, error) {
	for _, one := range list {
		if matched, err := is(one); !matched || err != nil {
			return false, err
		}
	}
	return true, nil
}

func (v *visit) permission(p *rbacv3.Permission) (bool, error) {
	switch rule := p.GetRule().(type) {
	case *rbacv3.Permission_Any:
		return rule.Any, nil
	case *rbacv3.Permission_AndRules:
		return allOf(rule.AndRules.GetRules(), v.permission)
	case *rbacv3.Permission_OrRules:
		return anyOf(rule.OrRules.GetRules(), v.permission)
	case *rbacv3.Permission_NotRule:
		matched, err := v.permission(rule.NotRule)
		return !matched, err
	case *rbacv3.Permission_Header:
		return v.header(rule.Header)
	case *rbacv3.Permission_UrlPath:
		return v.gate.text(rule.UrlPath.GetPath(), v.call.path())
	case *rbacv3.Permission_UriTemplate:
		return v.template(rule.UriTemplate)
	case *rbacv3.Permission_DestinationIp:
		return inRange(rule.DestinationIp, v.call.To.Addr())
	case *rbacv3.Permission_DestinationPort:
		return rule.DestinationPort == uint32(v.call.To.Port()), nil
	case *rbacv3.Permission_RequestedServerName:
		return v.gate.text(rule.RequestedServerName, v.call.ServerName)
	case *rbacv3.Permission_Metadata:
		return rule.Metadata.GetInvert(), nil //nolint:staticcheck // gRPC servers know this one, and have no metadata (gRFC A41)
	case *rbacv3.Permission_SourcedMetadata:
		return v.metadata(rule.SourcedMetadata.GetMetadataMatcher())
	default:
		return false, fmt.Errorf("permission %T is not known here", rule)
	}
}

func (v *visit) principal(p *rbacv3.Principal) (bool, error) {
	switch id := p.GetIdentifier().(type) {
	case *rbacv3.Principal_Any:
		return id.Any, nil
	case *rbacv3.Principal_AndIds:
		return allOf(id.AndIds.GetIds(), v.principal)
	case *rbacv3.Principal_OrIds:
		return anyOf(id.OrIds.GetIds(), v.principal)
	case *rbacv3.Principal_NotId:
		matched, err := v.principal(id.NotId)
		return !matched, err
	case *rbacv3.Principal_Authenticated_:
		// Envoy compares the URIs, then the DNS names, then the subject.
		return anyOf(v.call.Certificate.names(), func(name string) (bool, error) {
			return v.gate.text(id.Authenticated.GetPrincipalName(), name)
		})
	case *rbacv3.Principal_DirectRemoteIp:
		return inRange(id.DirectRemoteIp, v.call.From)
	case *rbacv3.Principal_RemoteIp:
		return inRange(id.RemoteIp, v.call.Client)
	case *rbacv3.Principal_Header:
		return v.header(id.Header)
	case *rbacv3.Principal_Metadata:
		return id.Metadata.GetInvert(), nil //nolint:staticcheck // gRPC servers know this one, and have no metadata (gRFC A41)
	case *rbacv3.Principal_SourcedMetadata:
		return v.metadata(id.SourcedMetadata.GetMetadataMatcher())
	default:
		return false, fmt.Errorf("principal %T is not known here", id)
	}
}

func inRange(r *core.CidrRange, a netip.Addr) (bool, error) {
	base, err := netip.ParseAddr(r.GetAddressPrefix())
	if err != nil {
		return false, err
	}
	return netip.PrefixFrom(base, int(r.GetPrefixLen().GetValue())).Contains(a), nil
}

func (v *visit) header(m *routev3.HeaderMatcher) (bool, error) {
	value, ok := v.call.header(m.GetName())
	if m.GetInvertMatch() || m.GetTreatMissingHeaderAsEmpty() {
		return false, fmt.Errorf("the header match %v is not known here", m)
	}
	switch s := m.GetHeaderMatchSpecifier().(type) {
	case *routev3.HeaderMatcher_PresentMatch:
		return ok == s.PresentMatch, nil
	case *routev3.HeaderMatcher_StringMatch:
		matched, err := v.gate.text(s.StringMatch, value)
		return ok && matched, err
	default:
		matched, err := v.olderHeader(m, value)
		return ok && matched, err
	}
}

// olderHeader compares a header by the fields that all gRPC servers know.
//
//nolint:staticcheck // see above
func (v *visit) olderHeader(m *routev3.HeaderMatcher, value string) (bool, error) {
	switch s := m.GetHeaderMatchSpecifier().(type) {
	case *routev3.HeaderMatcher_ExactMatch:
		return value == s.ExactMatch, nil
	case *routev3.HeaderMatcher_PrefixMatch:
		return strings.HasPrefix(value, s.PrefixMatch), nil
	case *routev3.HeaderMatcher_SuffixMatch:
		return strings.HasSuffix(value, s.SuffixMatch), nil
	case *routev3.HeaderMatcher_SafeRegexMatch:
		return v.gate.fullMatch(s.SafeRegexMatch.GetRegex(), value)
	default:
		return false, fmt.Errorf("the header match %v is not known here", m)
	}
}

// literals are the characters that operators of Envoy's templates take.
const literals = `a-zA-Z0-9\-._~%!$&'()*+,;:@=`

// template compares the path with a template of Envoy's: "*" is a segment, "**" any number of them.
func (v *visit) template(config *core.TypedExtensionConfig) (bool, error) {
	var t template.UriTemplateMatchConfig
	if err := config.GetTypedConfig().UnmarshalTo(&t); err != nil {
		return false, err
	}
	expression := regexp.QuoteMeta(t.GetPathTemplate())
	expression = strings.ReplaceAll(expression, `\*\*`, "["+literals+"/]*")
	expression = strings.ReplaceAll(expression, `\*`, "["+literals+"]+")
	return v.gate.fullMatch(expression, v.call.path())
}

// metadata compares a value at a path in the metadata of a filter.
func (v *visit) metadata(m *matcher.MetadataMatcher) (bool, error) {
	var at any = v.found[m.GetFilter()]
	for _, s := range m.GetPath() {
		object, _ := at.(map[string]any)
		at = object[s.GetKey()]
	}
	matched, err := v.value(m.GetValue(), at)
	return matched != m.GetInvert(), err
}

func (v *visit) value(m *matcher.ValueMatcher, value any) (bool, error) {
	switch p := m.GetMatchPattern().(type) {
	case *matcher.ValueMatcher_PresentMatch:
		return (value != nil) == p.PresentMatch, nil
	case *matcher.ValueMatcher_StringMatch:
		text, ok := value.(string)
		if !ok {
			return false, nil
		}
		return v.gate.text(p.StringMatch, text)
	case *matcher.ValueMatcher_ListMatch:
		list, _ := value.([]any)
		return anyOf(list, func(one any) (bool, error) { return v.value(p.ListMatch.GetOneOf(), one) })
	case *matcher.ValueMatcher_OrMatch:
		return anyOf(p.OrMatch.GetValueMatchers(), func(one *matcher.ValueMatcher) (bool, error) { return v.value(one, value) })
	default:
		return false, fmt.Errorf("matcher of values %T is not known here", p)
	}
}
