// SPDX-License-Identifier: Apache-2.0

package route

import (
	"errors"
	"fmt"

	rbacv3 "github.com/envoyproxy/go-control-plane/envoy/config/rbac/v3"
	cors "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/cors/v3"
	httpauthz "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_authz/v3"
	fault "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/fault/v3"
	grpcweb "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/grpc_web/v3"
	jwt "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/jwt_authn/v3"
	httprbac "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/rbac/v3"
	router "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	tcpauthz "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/ext_authz/v3"
	tcprbac "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/rbac/v3"
	matcher "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/rbac"
)

// filter evaluates a call, and reports whether it goes on. A filter that denies says so in the
// access.
type filter func(c *call, a *Access) (goesOn bool)

// newFilter compiles a filter of connections or requests. It is nil for a filter that decides
// nothing.
func newFilter(config *anypb.Any) (filter, error) {
	message, err := config.UnmarshalNew()
	if err != nil {
		return nil, err
	}
	switch m := message.(type) {
	case *httprbac.RBAC:
		return newRBAC(rbac.HTTPFilter, m.GetRules(), m.GetShadowRules(), m.GetShadowRulesStatPrefix())
	case *tcprbac.RBAC:
		return newRBAC(rbac.TCPFilter, m.GetRules(), m.GetShadowRules(), m.GetShadowRulesStatPrefix())
	case *jwt.JwtAuthentication:
		return newTokens(m), nil
	case *httpauthz.ExtAuthz:
		return newAsking(rbac.HTTPFilter, m.GetFilterEnabledMetadata())
	case *tcpauthz.ExtAuthz:
		return newAsking(rbac.TCPFilter, m.GetFilterEnabledMetadata())
	case *fault.HTTPFault, *cors.Cors, *router.Router, *grpcweb.GrpcWeb:
		return nil, nil // their effect is part of the rule of the request
	default:
		return nil, fmt.Errorf("a filter %s", message.ProtoReflect().Descriptor().FullName())
	}
}

// newRBAC compiles the filter of AuthorizationPolicies.
func newRBAC(name string, enforced, shadow *rbacv3.RBAC, prefix string) (filter, error) {
	of, err := newRules(enforced)
	shadows, shadowErr := newRules(shadow)
	if err = errors.Join(err, shadowErr); err != nil {
		return nil, err
	}
	return func(c *call, a *Access) bool {
		shadows.observe(name, prefix, c, a)
		return of.admits(c, a)
	}, nil
}

// observe evaluates rules in shadow mode, which deny nothing. They belong to dry-run policies, or
// decide whether an extension provider is asked.
func (r *rules) observe(name, prefix string, c *call, a *Access) {
	if r == nil {
		return
	}
	matched, _ := r.match(c)
	if rbac.IsDryRun(prefix) {
		if r.action != rbacv3.RBAC_LOG {
			a.DryRun = append(a.DryRun, DryRun{(matched != "") == (r.action == rbacv3.RBAC_ALLOW), matched})
		}
	} else if matched != "" {
		c.note(name, rbac.MatchedKey(prefix), matched)
	}
}

func (r *rules) admits(c *call, a *Access) bool {
	if r == nil {
		return true
	}
	matched, by := r.match(c)
	switch r.action {
	case rbacv3.RBAC_LOG:
		if matched != "" {
			a.Audited = append(a.Audited, matched)
		}
	case rbacv3.RBAC_DENY:
		if matched != "" {
			a.Allowed, a.Cause, a.By, a.Policy = false, ByRule, by, matched
			return false
		}
	default:
		if matched == "" {
			a.Allowed, a.Cause, a.Policies = false, NoAllowRule, r.names
			a.By, a.Policy = Origin{}, ""
			return false
		}
		a.Cause, a.By, a.Policy = ByRule, by, matched
	}
	return true
}

// policyOf returns the rule of an AuthorizationPolicy behind the name of a policy in an RBAC
// filter. It is zero for other names.
func policyOf(policy string) Origin {
	namespace, name, rule, ok := rbac.ParsePolicyName(policy)
	if !ok {
		return Origin{}
	}
	return Origin{Kind: istio.AuthorizationPolicy.Kind, Namespace: namespace, Name: name, Field: fmt.Sprintf("spec.rules[%d]", rule)}
}

// newAsking compiles a filter that asks an extension provider if shadow rules have matched.
func newAsking(name string, on *matcher.MetadataMatcher) (filter, error) {
	enabled, err := newMetadata(on)
	return func(c *call, a *Access) bool {
		if enabled(c) {
			policy, _ := c.metadata[name][rbac.ProviderKey()].(string)
			a.Asked = append(a.Asked, Asked{rbac.AskedProvider(policy), policy})
		}
		return true
	}, err
}
