// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	rbacv3 "github.com/envoyproxy/go-control-plane/envoy/config/rbac/v3"
	httprbac "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/rbac/v3"
	tcprbac "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/rbac/v3"
	security "istio.io/api/security/v1beta1"
)

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
