// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"fmt"
	"slices"
	"strings"

	security "istio.io/api/security/v1beta1"

	"github.com/pilotkit/pilotkit/internal/rbac"
)

// authorizationPolicy finds what of an AuthorizationPolicy has no effect.
func (f *findings) authorizationPolicy(a *authorizationPolicy) {
	if a.unknown {
		f.add("spec.action", "it denies everything: the action is not known")
	}
	targets := a.targets()
	for _, r := range targets {
		if !isGateway(r) {
			f.add("spec.targetRefs", "policies for a %s are for waypoints, which are not configured", r.GetKind())
		}
	}
	if len(targets) == 0 && !slices.ContainsFunc(f.gateways, func(g *gateway) bool { return compatible(a.selector, g.spec.GetSelector()) }) {
		if !f.forServers(a) {
			f.add("", "only gateways and gRPC servers enforce it, and no Gateway is for routers that it selects, and no service has a workload that it does")
		}
	}
	f.tokens(a)
	f.provider(a)
	f.unchecked(a, rbac.HTTP)
	if slices.ContainsFunc(f.gateways, (*gateway).servesTCP) {
		f.unchecked(a, rbac.TCP)
	}
}

// compatible reports whether something can have the labels of two selectors.
func compatible(a, b map[string]string) bool {
	for key, value := range a {
		if other, ok := b[key]; ok && other != value {
			return false
		}
	}
	return true
}

// servesTCP reports whether a server passes connections on of which no request is known.
func (g *gateway) servesTCP() bool {
	for _, s := range g.spec.GetServers() {
		if kind, ok := kindOf(s); ok && kind != plainHTTP && kind != terminatedHTTP {
			return true
		}
	}
	return false
}

// tokens finds rules by what is in tokens, which nothing reads.
func (f *findings) tokens(a *authorizationPolicy) {
	for i, rule := range a.spec.GetRules() {
		at := element("spec.rules", i)
		for j, from := range rule.GetFrom() {
			if s := from.GetSource(); len(s.GetRequestPrincipals())+len(s.GetNotRequestPrincipals()) > 0 {
				f.noTokens(element(at+".from", j) + ".source")
			}
		}
		for j, c := range rule.GetWhen() {
			if strings.HasPrefix(c.GetKey(), "request.auth.") {
				f.noTokens(element(at+".when", j))
			}
		}
	}
}

func (f *findings) noTokens(field string) {
	f.add(field, "tokens are not checked, so that no request has what it is about: RequestAuthentications have no effect")
}

// provider finds connections that the provider of a CUSTOM policy is not asked about.
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

// unchecked finds what of the rules cannot be checked of requests, or of connections.
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

// effectsOfAuthorizationPolicy has an effect for each Gateway whose routers it can be for.
func (f *findings) effectsOfAuthorizationPolicy(a *authorizationPolicy) []Effect {
	clients := "routers of namespace " + a.namespace
	if a.namespace == f.settings.rootNamespace() {
		clients = "routers of all namespaces"
	}
	var gateways []string
	for _, r := range a.targets() {
		if isGateway(r) {
			gateways = append(gateways, r.GetName())
		}
	}
	switch {
	case len(gateways) > 0:
		clients = fmt.Sprintf("routers of namespace %s of the Kubernetes Gateway %s", a.namespace, strings.Join(gateways, ", "))
	case len(a.targets()) > 0 || !slices.ContainsFunc(f.gateways, func(g *gateway) bool { return compatible(a.selector, g.spec.GetSelector()) }):
		return nil
	case len(a.selector) > 0:
		clients += " with the labels " + a.selector.String()
	}
	on := "what they serve: " + a.spec.GetAction().String()
	if a.dryRun {
		on += ", tried only"
	}
	return []Effect{{clients, on}}
}
