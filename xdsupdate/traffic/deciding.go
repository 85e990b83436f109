// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"fmt"
	"strconv"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	rbacv3 "github.com/envoyproxy/go-control-plane/envoy/config/rbac/v3"
	httpauthz "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_authz/v3"
	jwt "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/jwt_authn/v3"
	httprbac "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/rbac/v3"
	tcpauthz "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/ext_authz/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	tcprbac "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/rbac/v3"
	tcp "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/tcp_proxy/v3"
	tls "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	matcher "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/pilotkit/pilotkit/internal/rbac"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// deciding is the evaluation of one call by the filters of a filter chain.
type deciding struct {
	*state
	proxy *proxy
	call  Call
	// authority is the authority of the request.
	authority string
	see       rbac.Call
	// denied is the answer to a denied request. Without HTTP it is AnswerClosed.
	denied string
	// mutual is the rule that demands mutual TLS, and mutualWords describes it.
	mutual      PolicyRule
	mutualWords string
	out         Decision
	// claims are the claims of the verified token, or nil.
	claims map[string]any
	// unknown lists further attributes that the call does not specify.
	unknown []string
	// to is the TCP proxy that forwards a connection without HTTP, or nil.
	to *tcp.TcpProxy
}

// newDeciding starts with the connection alone: the request and the identity of the caller are
// unknown.
func (x *explaining) newDeciding(port uint32) *deciding {
	c := x.call
	return &deciding{state: x.state, proxy: x.proxy, call: c, authority: x.authority, denied: AnswerClosed, see: rbac.Call{
		Direct: c.Source.Unmap(), Remote: c.Remote.Unmap(), Destination: c.Destination.Unmap(), Port: port,
	}}
}

func (d *deciding) decide(chain *listenerv3.FilterChain) {
	d.out.Reason = noPolicy
	if !d.handshake(chain.GetTransportSocket()) {
		return
	}
	d.out.Allowed = true
	for _, f := range chain.GetFilters() {
		if d.pass(f.GetTypedConfig()) {
			d.out.Allowed = false
			break
		}
	}
	d.out.Unknown = append(d.see.Unknown(), d.unknown...)
}

// handshake determines the caller's identity for policies. It returns false if the caller needs a
// certificate and has none.
func (d *deciding) handshake(socket *core.TransportSocket) bool {
	context := &tls.DownstreamTlsContext{}
	if socket.GetTypedConfig().UnmarshalTo(context) != nil {
		return true // plain text
	}
	if context.GetRequireClientCertificate().GetValue() && d.call.Principal == "" {
		d.refuse(AnswerClosed, d.mutual, d.mutualWords)
		return false
	}
	trust := context.GetCommonTlsContext().GetCombinedValidationContext().GetDefaultValidationContext().GetTrustChainVerification()
	if trust == tls.CertificateValidationContext_ACCEPT_UNTRUSTED {
		return true // certificates are not verified, so callers have no identity
	}
	if context.GetRequireClientCertificate().GetValue() || context.GetCommonTlsContext().GetValidationContextType() != nil {
		d.see.Identity = d.call.Principal
		d.out.Identity = d.call.Principal
	}
	return true
}

func (d *deciding) refuse(answer string, by PolicyRule, reason string) {
	d.out.Answer, d.out.By, d.out.Reason = answer, by, reason
}

// pass evaluates a filter and reports whether it denies the call.
func (d *deciding) pass(filter *anypb.Any) (refused bool) {
	config, err := filter.UnmarshalNew()
	if err != nil {
		return false // the listener has no filters of other types
	}
	switch m := config.(type) {
	case *hcm.HttpConnectionManager:
		return d.request(m)
	case *httprbac.RBAC:
		return d.rules(rbac.HTTPFilter, m.GetRules(), m.GetShadowRules(), m.GetShadowRulesStatPrefix())
	case *tcprbac.RBAC:
		return d.rules(rbac.TCPFilter, m.GetRules(), m.GetShadowRules(), m.GetShadowRulesStatPrefix())
	case *jwt.JwtAuthentication:
		return d.tokens(m)
	case *httpauthz.ExtAuthz:
		d.ask(rbac.HTTPFilter, m.GetFilterEnabledMetadata())
	case *tcpauthz.ExtAuthz:
		d.ask(rbac.TCPFilter, m.GetFilterEnabledMetadata())
	case *tcp.TcpProxy:
		if d.to = m; m.GetCluster() == envoy.BlackHole {
			d.refuse(AnswerClosed, PolicyRule{}, "all connections are closed, because what serves them cannot be sent")
			return true
		}
	}
	return false
}

// request evaluates the HTTP filters.
func (d *deciding) request(m *hcm.HttpConnectionManager) (refused bool) {
	if d.denied = AnswerPermissionDenied; d.proxy.role == router {
		d.denied = "403"
		if !d.normalizePath(m) {
			d.refuse("400", PolicyRule{}, "the gateway takes no such path")
			return true
		}
	}
	d.see.Method, d.see.Path, d.see.Authority, d.see.Headers = d.call.Method, d.call.Path, d.authority, d.call.Headers
	for _, f := range m.GetHttpFilters() {
		if d.pass(f.GetTypedConfig()) {
			return true
		}
	}
	return false
}

// rules evaluates an RBAC filter, which implements AuthorizationPolicies.
func (d *deciding) rules(filter string, rules, shadow *rbacv3.RBAC, prefix string) (refused bool) {
	d.shadow(filter, shadow, prefix)
	matched := d.see.Match(rules)
	switch {
	case rules == nil:
	case rules.GetAction() == rbacv3.RBAC_LOG && matched != "":
		d.out.Audited = append(d.out.Audited, d.ruleOf(matched))
	case rules.GetAction() == rbacv3.RBAC_DENY && matched != "":
		by, reason := d.whyDenied(matched)
		d.refuse(d.denied, by, reason)
		return true
	case rules.GetAction() == rbacv3.RBAC_ALLOW && matched == "":
		d.refuse(d.denied, PolicyRule{}, fmt.Sprintf("there are ALLOW policies (%s), and none of their rules matches", d.policiesOf(rules)))
		return true
	case rules.GetAction() == rbacv3.RBAC_ALLOW:
		d.out.By, d.out.Reason = d.ruleOf(matched), "a rule allows it"
	}
	return false
}

// shadow evaluates rules in shadow mode, which deny nothing. They belong to dry-run policies, or
// decide whether an extension provider is asked.
func (d *deciding) shadow(filter string, rules *rbacv3.RBAC, prefix string) {
	if rules == nil {
		return
	}
	matched := d.see.Match(rules)
	if !rbac.IsDryRun(prefix) {
		d.see.NoteShadow(filter, prefix, matched)
	} else if action := rules.GetAction(); action != rbacv3.RBAC_LOG {
		d.out.DryRun = append(d.out.DryRun, DryRunDecision{Allows: (matched != "") == (action == rbacv3.RBAC_ALLOW), By: d.ruleOf(matched)})
	}
}

// ask evaluates an ext_authz filter, which asks its provider if shadow rules have matched.
func (d *deciding) ask(filter string, on *matcher.MetadataMatcher) {
	if d.see.HasMetadata(on) {
		policy := d.see.Shadow(filter)
		d.out.Providers = append(d.out.Providers, AskedProvider{rbac.AskedProvider(policy), d.ruleOf(policy)})
	}
}

func status(code int) string { return strconv.Itoa(code) }
