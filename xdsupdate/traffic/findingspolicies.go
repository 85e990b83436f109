// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	security "istio.io/api/security/v1beta1"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/internal/jwtauthn"
	"github.com/pilotkit/pilotkit/internal/xdsbuild"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/objects"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/rbac"
)

func (f *findings) authorizationPolicy(a *objects.AuthorizationPolicy) func() []Effect {
	if a.Spec.GetAction() == security.AuthorizationPolicy_ALLOW {
		f.unread(a.Unread, "the policy allows nothing, because the field %s")
	} else {
		f.unread(a.Unread, "the policy denies everything, because the field %s")
	}
	f.protects(&a.PolicyTarget, f.nobodyEnforces(a))
	f.tokens(a)
	f.provider(a)
	f.unverified(a)
	f.passesBy(a)
	f.unchecked(a, rbac.HTTP)
	if slices.ContainsFunc(f.Gateways, servesTCP) {
		f.unchecked(a, rbac.TCP)
	}
	f.onServers(a)
	return func() []Effect { return f.effectsOfAuthorization(a) }
}

// nobodyEnforces returns the reason why a policy that selects no Gateway is not enforced. It is
// empty if gRPC servers may enforce the policy.
func (f *findings) nobodyEnforces(a *objects.AuthorizationPolicy) string {
	const noGateway = "only gateways and gRPC servers enforce it, and no Gateway is for routers that it selects, and "
	switch {
	case f.forServers(a):
		return ""
	case f.hasWorkload(f.Reach(a.Namespace), a.Selector):
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
func (f *findings) protects(t *objects.PolicyTarget, nobody string) {
	for _, r := range t.Targets {
		if !objects.IsGateway(r) {
			f.add("spec.targetRefs", "policies for a %s are for waypoints, which are not configured", r.GetKind())
		}
	}
	if nobody != "" && len(t.Targets) == 0 && !f.selectsGateways(f.name.Namespace, t) {
		f.add("", "%s", nobody)
	}
}

// unverified adds a finding for rules that require identities at a Gateway server that accepts
// unverified client certificates.
func (f *findings) unverified(a *objects.AuthorizationPolicy) {
	field := a.IdentityField()
	if field == "" {
		return
	}
	for _, g := range f.Gateways {
		if len(a.Targets) == 0 && !f.mayProtect(f.name.Namespace, a.Selector, g) {
			continue
		}
		for i, s := range g.Spec.GetServers() {
			if xdsbuild.TakesUnverified(s.GetTls()) {
				f.add(field, "nobody verifies the certificates of the clients of %s of Gateway %s: there nobody has an identity", objects.Element("spec.servers", i), g)
				return
			}
		}
	}
}

// passesBy adds a finding for a policy for certain gateways if a server of these checks no policies.
func (f *findings) passesBy(a *objects.AuthorizationPolicy) {
	for _, g := range f.Gateways {
		if len(a.Selector) == 0 || !f.mayProtect(f.name.Namespace, a.Selector, g) {
			continue
		}
		for i, s := range g.Spec.GetServers() {
			if kind, ok := kindOf(s); ok && kind == autoPassthrough {
				f.add("", "%s of Gateway %s has the mode AUTO_PASSTHROUGH and checks no policies: the workloads behind it do", objects.Element("spec.servers", i), g)
				return
			}
		}
	}
}

// selectsGateways reports whether a policy may select routers of some Gateway.
func (f *findings) selectsGateways(namespace string, t *objects.PolicyTarget) bool {
	return slices.ContainsFunc(f.Gateways, func(g *objects.Gateway) bool { return f.mayProtect(namespace, t.Selector, g) })
}

// mayProtect reports whether a policy's selector may select routers of a Gateway. Routers of a
// Kubernetes Gateway are always in the Gateway's namespace.
func (f *findings) mayProtect(namespace string, selector map[string]string, g *objects.Gateway) bool {
	p, within := g.Router(), f.Reach(namespace)
	return compatible(selector, p.Labels) && (within == "" || g.Owner == (objects.ObjectName{}) || p.Namespace == within)
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

// servesTCP reports whether the Gateway has a server that forwards connections without HTTP and
// checks policies.
func servesTCP(g *objects.Gateway) bool {
	for _, s := range g.Spec.GetServers() {
		if kind, ok := kindOf(s); ok && kind != plainHTTP && kind != terminatedHTTP && kind != autoPassthrough {
			return true
		}
	}
	return false
}

// tokens adds findings for rules about token content if no RequestAuthentication verifies tokens.
func (f *findings) tokens(a *objects.AuthorizationPolicy) {
	if f.verifiesTokens(a) {
		return
	}
	for _, field := range a.TokenFields() {
		f.add(field, "no RequestAuthentication is for these routers, so that no request has what it is about")
	}
}

// verifiesTokens reports whether a RequestAuthentication may apply to a router that a policy
// applies to.
func (f *findings) verifiesTokens(a *objects.AuthorizationPolicy) bool {
	root := f.settings.RootNamespace()
	for namespace, list := range f.RequestAuthentications.All() {
		if namespace != a.Namespace && namespace != root && a.Namespace != root {
			continue
		}
		for _, r := range list {
			if len(r.Rules) > 0 && (len(r.Targets)+len(a.Targets) > 0 || compatible(r.Selector, a.Selector)) {
				return true
			}
		}
	}
	return false
}

// provider adds findings about the provider of a CUSTOM policy: it does not exist, or it cannot
// check TCP connections.
func (f *findings) provider(a *objects.AuthorizationPolicy) {
	if a.Spec.GetAction() != security.AuthorizationPolicy_CUSTOM {
		return
	}
	name := a.Spec.GetProvider().GetName()
	switch e := f.settings.authorizer(name); {
	case e == nil:
		f.add("spec.provider.name", "the mesh configuration has no extension provider %q for authorization: what the policy is about is refused", name)
	case e.GetEnvoyExtAuthzHttp() != nil && slices.ContainsFunc(f.Gateways, servesTCP):
		f.add("spec.provider.name", "the provider %q decides about requests only: TCP connections are not checked", name)
	}
}

// unchecked adds findings for conditions that cannot be checked for requests, for connections without
// HTTP, or by gRPC servers.
func (f *findings) unchecked(a *objects.AuthorizationPolicy, form rbac.Form) {
	texts := map[rbac.Form][2]string{ // for ALLOW policies, and for others
		rbac.HTTP: {"the rule allows nothing: %s", "it is not looked at, so that the rule is about more: %s"},
		rbac.TCP:  {"the rule allows no TCP connection: it %s", "of TCP connections it is not looked at, so that the rule is about more of them: it %s"},
		rbac.GRPC: {"on gRPC servers the rule allows nothing: %s", "gRPC servers do not look at it, so that the rule is about more: %s"},
	}[form]
	text := texts[1]
	if a.Spec.GetAction() == security.AuthorizationPolicy_ALLOW {
		text = texts[0]
	}
	t := rbac.Translator{Form: form, Trust: f.settings.trust(), Check: checkOf(form), Problem: func(_ rbac.Policy, p rbac.Problem) {
		if form != rbac.TCP || p.HTTP { // the other problems are in the findings for requests
			f.add(p.Field, text, p.Err)
		}
	}}
	if form == rbac.GRPC {
		t.ForServer([]rbac.Policy{a.Policy()})
	} else {
		t.Rules(a.Spec.GetAction(), []rbac.Policy{a.Policy()})
	}
}

func (f *findings) effectsOfAuthorization(a *objects.AuthorizationPolicy) (out []Effect) {
	if clients, ok := f.protected(a.Namespace, &a.PolicyTarget); ok {
		on := "what they serve: " + a.Spec.GetAction().String()
		if a.DryRun {
			on += ", tried only"
		}
		out = append(out, Effect{clients, on})
	}
	return append(out, f.effectsOnServers(a)...)
}

// protected describes the routers that a policy applies to.
func (f *findings) protected(namespace string, t *objects.PolicyTarget) (clients string, ok bool) {
	var gateways []string
	for _, r := range t.Targets {
		if objects.IsGateway(r) {
			gateways = append(gateways, r.GetName())
		}
	}
	clients = "routers of namespace " + namespace
	switch {
	case len(gateways) > 0:
		return fmt.Sprintf("%s of the Kubernetes Gateway %s", clients, strings.Join(gateways, ", ")), true
	case len(t.Targets) > 0 || !f.selectsGateways(namespace, t):
		return "", false
	case namespace == f.settings.RootNamespace():
		clients = "routers of all namespaces"
	}
	if len(t.Selector) > 0 {
		clients += " with the labels " + t.Selector.String()
	}
	return clients, true
}

// forServers reports whether an AuthorizationPolicy may apply to gRPC servers, because it selects a
// service workload that may be one.
func (f *findings) forServers(a *objects.AuthorizationPolicy) bool {
	return len(a.Targets) == 0 && slices.ContainsFunc(f.workloadsOf(f.Reach(a.Namespace)), func(w labelled) bool {
		return w.grpc && a.Selector.SubsetOf(w.labels)
	})
}

// verifiesNothing reports whether a policy about tokens may apply to gRPC servers, which verify
// none (S9), because it selects a service workload that is not a router of a Gateway.
func (f *findings) verifiesNothing(namespace string, t *objects.PolicyTarget) bool {
	return len(t.Targets) == 0 && slices.ContainsFunc(f.workloadsOf(f.Reach(namespace)), func(w labelled) bool {
		return t.Selector.SubsetOf(w.labels) && !slices.ContainsFunc(f.Gateways, func(g *objects.Gateway) bool {
			router := g.Router().Labels
			return len(router) > 0 && router.SubsetOf(w.labels)
		})
	})
}

// onServers adds findings for parts of an AuthorizationPolicy that gRPC servers cannot implement.
func (f *findings) onServers(a *objects.AuthorizationPolicy) {
	if !f.forServers(a) {
		return
	}
	switch action := a.Spec.GetAction(); {
	case action == security.AuthorizationPolicy_AUDIT:
		f.add("spec.action", "gRPC servers log nothing")
	case action == security.AuthorizationPolicy_CUSTOM:
		f.add("spec.action", "gRPC servers ask no provider: they deny what the rules match")
	case a.DryRun:
		f.add("metadata.annotations["+objects.DryRunAnnotation+"]", "gRPC servers try no policies: there it does nothing")
	}
	f.unchecked(a, rbac.GRPC)
	f.identitiesInPlainText(a)
	if f.verifiesTokens(a) && f.verifiesNothing(a.Namespace, &a.PolicyTarget) {
		for _, field := range a.TokenFields() {
			f.add(field, "gRPC servers verify no tokens: no call to one has what it is about")
		}
	}
}

// identitiesInPlainText adds a finding for rules about identities if the policy selects a workload
// whose gRPC server would accept plain text (S11).
func (f *findings) identitiesInPlainText(a *objects.AuthorizationPolicy) {
	field := a.IdentityField()
	if field == "" || a.Namespace == f.settings.RootNamespace() {
		return
	}
	for _, w := range f.workloadsOf(a.Namespace) {
		if _, mutual := f.mutualTLSBy(a.Namespace, []registry.Labels{w.labels}, 0); w.grpc && a.Selects(w.labels) && !mutual {
			f.add(field, "gRPC servers among the workloads take plain text, in which clients have no identities: there it never matches")
			return
		}
	}
}

// effectsOnServers returns the effect of an AuthorizationPolicy on gRPC servers.
func (f *findings) effectsOnServers(a *objects.AuthorizationPolicy) []Effect {
	action := a.Spec.GetAction()
	if !f.forServers(a) || a.DryRun || action == security.AuthorizationPolicy_AUDIT {
		return nil
	}
	clients := "gRPC servers of namespace " + a.Namespace
	if a.Namespace == f.settings.RootNamespace() {
		clients = "gRPC servers of all namespaces"
	}
	if len(a.Selector) > 0 {
		clients += " with the labels " + a.Selector.String()
	}
	on := action.String()
	if action == security.AuthorizationPolicy_CUSTOM {
		on = "DENY, as they ask no provider"
	}
	return []Effect{{clients, "the calls that they serve: " + on}}
}

func (f *findings) requestAuthentication(a *objects.RequestAuthentication) func() []Effect {
	effects := func() []Effect { return f.effectsOfTokens(a) }
	f.protects(&a.PolicyTarget, "only gateways enforce it, and no Gateway is for routers that it selects")
	f.unread(a.Unread, "all requests are denied, because the field %s")
	if len(a.Unread) > 0 {
		return effects
	}
	if len(a.Rules) == 0 {
		f.add("spec.jwtRules", "there are no rules, and no token is verified")
	} else if f.verifiesNothing(a.Namespace, &a.PolicyTarget) {
		f.add("spec.jwtRules", "gRPC servers verify no tokens: those among the workloads take calls with any token, and without one")
	}
	for i, r := range a.Rules {
		at := objects.Element("spec.jwtRules", i)
		if err := checkOf(rbac.HTTP)(jwtauthn.Provider(r.Rule)); err != nil {
			f.add(at, "all requests are denied: %s", err)
		}
	}
	return effects
}

// unfetched adds findings for the keys of a RequestAuthentication that are missing or outdated.
func (f *findings) unfetched(o objects.Object) {
	a, ok := o.(*objects.RequestAuthentication)
	if !ok || len(a.Unread) > 0 {
		return
	}
	for i, r := range a.Rules {
		if now := f.settings.TokenRule(r.Spec); now.Err != nil {
			f.add(objects.Element("spec.jwtRules", i), "%s", tokenProblem(now))
		}
	}
}

// tokenProblem describes the effect of missing or outdated keys on tokens.
func tokenProblem(r objects.TokenRule) error {
	switch {
	case errors.Is(r.Err, objects.ErrNoIssuer):
		return r.Err
	case r.Keys == "":
		return fmt.Errorf("requests with tokens of %s are denied: %w", r.Spec.GetIssuer(), r.Err)
	default:
		return fmt.Errorf("tokens of %s are verified by keys that were fetched before: %w", r.Spec.GetIssuer(), r.Err)
	}
}

// effectsOfTokens returns an effect for each issuer if the object may select routers of some Gateway.
func (f *findings) effectsOfTokens(a *objects.RequestAuthentication) (out []Effect) {
	clients, ok := f.protected(a.Namespace, &a.PolicyTarget)
	if !ok {
		return nil
	}
	for _, r := range a.Rules {
		out = append(out, Effect{clients, fmt.Sprintf("requests with tokens that are not valid are refused, those of issuer %q are verified", r.Spec.GetIssuer())})
	}
	return out
}
