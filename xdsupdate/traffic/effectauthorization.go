// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"fmt"
	"slices"
	"strings"

	security "istio.io/api/security/v1beta1"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/internal/xdsbuild"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/rbac"
)

func (a *authorizationPolicy) report(f *findings) {
	if a.spec.GetAction() == security.AuthorizationPolicy_ALLOW {
		f.unread(a.unread, "the policy allows nothing, because the field %s")
	} else {
		f.unread(a.unread, "the policy denies everything, because the field %s")
	}
	f.protects(&a.policyTarget, f.nobodyEnforces(a))
	f.tokens(a)
	f.provider(a)
	f.unverified(a)
	f.unchecked(a, rbac.HTTP)
	if slices.ContainsFunc(f.gateways, (*gateway).servesTCP) {
		f.unchecked(a, rbac.TCP)
	}
	f.onServers(a)
}

// nobodyEnforces returns the reason why a policy that selects no Gateway is not enforced. It is
// empty if gRPC servers may enforce the policy.
func (f *findings) nobodyEnforces(a *authorizationPolicy) string {
	const noGateway = "only gateways and gRPC servers enforce it, and no Gateway is for routers that it selects, and "
	switch {
	case f.forServers(a):
		return ""
	case f.hasWorkload(f.reach(a.namespace), a.selector):
		return noGateway + "no port of the workloads that it does has the protocol GRPC: sidecars do not enforce it"
	default:
		return noGateway + "no service has a workload that it does"
	}
}

// unread adds a finding for each unreadable part of a policy. The format has one argument, the
// error of the field.
func (f *findings) unread(unread []configstore.Violation, format string) {
	for _, u := range unread {
		f.add(u.Field, format, u.Message)
	}
}

// protects adds a finding for each target of a policy that is not a Gateway, and for a policy that
// selects no Gateway. The text of nobody explains the latter finding. If it is empty, that finding
// is omitted.
func (f *findings) protects(t *policyTarget, nobody string) {
	for _, r := range t.targets {
		if !isGateway(r) {
			f.add("spec.targetRefs", "policies for a %s are for waypoints, which are not configured", r.GetKind())
		}
	}
	if nobody != "" && len(t.targets) == 0 && !f.selectsGateways(f.name.namespace, t) {
		f.add("", "%s", nobody)
	}
}

// unverified adds a finding for rules that require identities at a Gateway server that accepts
// unverified client certificates.
func (f *findings) unverified(a *authorizationPolicy) {
	field := identityField(a.spec)
	if field == "" {
		return
	}
	for _, g := range f.gateways {
		if len(a.targets) == 0 && !f.mayProtect(f.name.namespace, a.selector, g) {
			continue
		}
		for i, s := range g.spec.GetServers() {
			if xdsbuild.TakesUnverified(s.GetTls()) {
				f.add(field, "nobody verifies the certificates of the clients of %s of Gateway %s: there nobody has an identity", element("spec.servers", i), g)
				return
			}
		}
	}
}

// selectsGateways reports whether a policy may select routers of some Gateway.
func (f *findings) selectsGateways(namespace string, t *policyTarget) bool {
	return slices.ContainsFunc(f.gateways, func(g *gateway) bool { return f.mayProtect(namespace, t.selector, g) })
}

// mayProtect reports whether a policy's selector may select routers of a Gateway. Routers of a
// Kubernetes Gateway are always in the Gateway's namespace.
func (f *findings) mayProtect(namespace string, selector map[string]string, g *gateway) bool {
	p, within := g.router(), f.reach(namespace)
	return compatible(selector, p.labels) && (within == "" || g.owner == (objectName{}) || p.namespace == within)
}

// compatible reports whether a workload can have the labels of both selectors.
func compatible(a, b map[string]string) bool {
	for key, value := range a {
		if other, ok := b[key]; ok && other != value {
			return false
		}
	}
	return true
}

// servesTCP reports whether the Gateway has a server that forwards connections without HTTP.
func (g *gateway) servesTCP() bool {
	for _, s := range g.spec.GetServers() {
		if kind, ok := kindOf(s); ok && kind != plainHTTP && kind != terminatedHTTP {
			return true
		}
	}
	return false
}

// tokens adds findings for rules about token content if no RequestAuthentication verifies tokens.
func (f *findings) tokens(a *authorizationPolicy) {
	if f.verifiesTokens(a) {
		return
	}
	for _, field := range tokenFields(a.spec) {
		f.add(field, "no RequestAuthentication is for these routers, so that no request has what it is about")
	}
}

// tokenFields returns the fields of a policy that depend on token content.
func tokenFields(spec *security.AuthorizationPolicy) (out []string) {
	for i, rule := range spec.GetRules() {
		at := element("spec.rules", i)
		for j, from := range rule.GetFrom() {
			if s := from.GetSource(); len(s.GetRequestPrincipals())+len(s.GetNotRequestPrincipals()) > 0 {
				out = append(out, element(at+".from", j)+".source")
			}
		}
		for j, c := range rule.GetWhen() {
			if strings.HasPrefix(c.GetKey(), "request.auth.") {
				out = append(out, element(at+".when", j))
			}
		}
	}
	return out
}

// verifiesTokens reports whether a RequestAuthentication may apply to a router that a policy
// applies to.
func (f *findings) verifiesTokens(a *authorizationPolicy) bool {
	root := f.settings.rootNamespace()
	for namespace, list := range f.requestAuthentications.All() {
		if namespace != a.namespace && namespace != root && a.namespace != root {
			continue
		}
		for _, r := range list {
			if len(r.rules) > 0 && (len(r.targets)+len(a.targets) > 0 || compatible(r.selector, a.selector)) {
				return true
			}
		}
	}
	return false
}

// provider adds findings about the provider of a CUSTOM policy: it does not exist, or it cannot
// check TCP connections.
func (f *findings) provider(a *authorizationPolicy) {
	if a.spec.GetAction() != security.AuthorizationPolicy_CUSTOM {
		return
	}
	name := a.spec.GetProvider().GetName()
	switch e := f.settings.authorizer(name); {
	case e == nil:
		f.add("spec.provider.name", "the mesh configuration has no extension provider %q for authorization: what the policy is about is refused", name)
	case e.GetEnvoyExtAuthzHttp() != nil && slices.ContainsFunc(f.gateways, (*gateway).servesTCP):
		f.add("spec.provider.name", "the provider %q decides about requests only: TCP connections are not checked", name)
	}
}

// unchecked adds findings for conditions that cannot be checked for requests, or for connections.
func (f *findings) unchecked(a *authorizationPolicy, form rbac.Form) {
	allows := a.spec.GetAction() == security.AuthorizationPolicy_ALLOW
	t := rbac.Translator{Form: form, Trust: f.settings.trust(), Check: checkOf(form), Problem: func(_ rbac.Policy, p rbac.Problem) {
		switch {
		case !p.HTTP && form == rbac.HTTP && allows:
			f.add(p.Field, "the rule allows nothing: %s", p.Err)
		case !p.HTTP && form == rbac.HTTP:
			f.add(p.Field, "it is not looked at, so that the rule is about more: %s", p.Err)
		case p.HTTP && allows:
			f.add(p.Field, "the rule allows no TCP connection: it %s", p.Err)
		case p.HTTP:
			f.add(p.Field, "of TCP connections it is not looked at, so that the rule is about more of them: it %s", p.Err)
		}
	}}
	policy := a.policy()
	t.Rules(a.spec.GetAction(), []rbac.Policy{policy})
}

func (a *authorizationPolicy) effects(f *findings) (out []Effect) {
	if clients, ok := f.protected(a.namespace, &a.policyTarget); ok {
		on := "what they serve: " + a.spec.GetAction().String()
		if a.dryRun {
			on += ", tried only"
		}
		out = append(out, Effect{clients, on})
	}
	return append(out, f.effectsOnServers(a)...)
}

// protected describes the routers that a policy applies to.
func (f *findings) protected(namespace string, t *policyTarget) (clients string, ok bool) {
	var gateways []string
	for _, r := range t.targets {
		if isGateway(r) {
			gateways = append(gateways, r.GetName())
		}
	}
	clients = "routers of namespace " + namespace
	switch {
	case len(gateways) > 0:
		return fmt.Sprintf("%s of the Kubernetes Gateway %s", clients, strings.Join(gateways, ", ")), true
	case len(t.targets) > 0 || !f.selectsGateways(namespace, t):
		return "", false
	case namespace == f.settings.rootNamespace():
		clients = "routers of all namespaces"
	}
	if len(t.selector) > 0 {
		clients += " with the labels " + t.selector.String()
	}
	return clients, true
}
