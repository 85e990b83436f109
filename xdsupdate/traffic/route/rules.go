// SPDX-License-Identifier: Apache-2.0

package route

import (
	"fmt"
	"maps"
	"slices"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	rbacv3 "github.com/envoyproxy/go-control-plane/envoy/config/rbac/v3"
	template "github.com/envoyproxy/go-control-plane/envoy/extensions/path/match/uri_template/v3"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/rbac"
)

// rules are the compiled policies of an RBAC filter.
type rules struct {
	action   rbacv3.RBAC_Action
	names    []string // sorted, as Envoy evaluates policies
	origins  []Origin
	policies []condition
}

// newRules compiles policies. The result is nil for nil.
func newRules(r *rbacv3.RBAC) (*rules, error) {
	if r == nil {
		return nil, nil
	}
	out := &rules{action: r.GetAction(), names: slices.Sorted(maps.Keys(r.GetPolicies()))}
	for _, name := range out.names {
		p := r.GetPolicies()[name]
		permissions, err := conditions(p.GetPermissions(), newPermission)
		if err != nil {
			return nil, fmt.Errorf("policy %.200q: %w", name, err)
		}
		principals, err := conditions(p.GetPrincipals(), newPrincipal)
		if err != nil {
			return nil, fmt.Errorf("policy %.200q: %w", name, err)
		}
		out.origins = append(out.origins, policyOf(name))
		out.policies = append(out.policies, every([]condition{some(permissions), some(principals)}))
	}
	return out, nil
}

// match returns the name and the origin of the first policy that matches, or "".
func (r *rules) match(c *call) (name string, origin Origin) {
	for i, matches := range r.policies {
		if matches(c) {
			return r.names[i], r.origins[i]
		}
	}
	return "", Origin{}
}

func newPermission(p *rbacv3.Permission) (condition, error) {
	switch m := p.GetRule().(type) {
	case *rbacv3.Permission_Any:
		return always(m.Any), nil
	case *rbacv3.Permission_AndRules:
		list, err := conditions(m.AndRules.GetRules(), newPermission)
		return every(list), err
	case *rbacv3.Permission_OrRules:
		list, err := conditions(m.OrRules.GetRules(), newPermission)
		return some(list), err
	case *rbacv3.Permission_NotRule:
		return inverse(newPermission(m.NotRule))
	case *rbacv3.Permission_Header:
		return newHeader(m.Header)
	case *rbacv3.Permission_UrlPath:
		return ofPath(newText(m.UrlPath.GetPath()))
	case *rbacv3.Permission_UriTemplate:
		return ofPath(newTemplate(m.UriTemplate.GetTypedConfig()))
	case *rbacv3.Permission_DestinationIp:
		return inRange(m.DestinationIp, "destination.ip"), nil
	case *rbacv3.Permission_DestinationPort:
		return func(c *call) bool { return m.DestinationPort == c.Port }, nil
	case *rbacv3.Permission_RequestedServerName:
		matches, err := newText(m.RequestedServerName)
		return func(c *call) bool { return matches(c.ServerName) }, err
	case *rbacv3.Permission_SourcedMetadata:
		return newMetadata(m.SourcedMetadata.GetMetadataMatcher())
	default:
		return nil, fmt.Errorf("a permission of the kind %T", m)
	}
}

func newPrincipal(p *rbacv3.Principal) (condition, error) {
	switch m := p.GetIdentifier().(type) {
	case *rbacv3.Principal_Any:
		return always(m.Any), nil
	case *rbacv3.Principal_AndIds:
		list, err := conditions(m.AndIds.GetIds(), newPrincipal)
		return every(list), err
	case *rbacv3.Principal_OrIds:
		list, err := conditions(m.OrIds.GetIds(), newPrincipal)
		return some(list), err
	case *rbacv3.Principal_NotId:
		return inverse(newPrincipal(m.NotId))
	case *rbacv3.Principal_Authenticated_:
		if m.Authenticated.GetPrincipalName() == nil {
			return func(c *call) bool { return c.identity != "" }, nil
		}
		matches, err := newText(m.Authenticated.GetPrincipalName())
		return func(c *call) bool { return c.identity != "" && matches(c.identity) }, err
	case *rbacv3.Principal_DirectRemoteIp:
		return inRange(m.DirectRemoteIp, "source.ip"), nil
	case *rbacv3.Principal_RemoteIp:
		return inRange(m.RemoteIp, "remote.ip"), nil
	case *rbacv3.Principal_Header:
		return newHeader(m.Header)
	case *rbacv3.Principal_SourcedMetadata:
		return newMetadata(m.SourcedMetadata.GetMetadataMatcher())
	default:
		return nil, fmt.Errorf("a principal of the kind %T", m)
	}
}

func always(value bool) condition { return func(*call) bool { return value } }

func inverse(of condition, err error) (condition, error) {
	return func(c *call) bool { return !of(c) }, err
}

func ofPath(matches text, err error) (condition, error) {
	return func(c *call) bool { return matches(c.bare) }, err
}

func inRange(r *core.CidrRange, attribute string) condition {
	p := prefixOf(r)
	return func(c *call) bool {
		a := c.Source
		switch attribute {
		case "destination.ip":
			a = c.Destination
		case "remote.ip":
			a = c.Remote
		}
		return c.within(p, a, attribute)
	}
}

// newTemplate compiles a path template.
func newTemplate(config *anypb.Any) (text, error) {
	m := &template.UriTemplateMatchConfig{}
	if err := config.UnmarshalTo(m); err != nil {
		return nil, err
	}
	return wholly(rbac.TemplateExpression(m.GetPathTemplate()))
}
