// SPDX-License-Identifier: Apache-2.0

package routesim

import (
	"fmt"
	"slices"

	security "istio.io/api/security/v1beta1"
	apitype "istio.io/api/type/v1beta1"
)

// Authorization is what calls are judged by: AuthorizationPolicies, read as Istio's API documents
// them. Rows of the list of decisions are named where the documentation is silent, or not kept.
type Authorization struct {
	Policies []*AuthorizationPolicy
	// TrustDomain is the trust domain of the mesh. Aliases are its aliases.
	TrustDomain string
	Aliases     []string
	// Providers are the extension providers of the mesh, by name.
	Providers map[string]*AuthorizationProvider
	// ManyProviders allows several providers for one workload.
	ManyProviders bool
	// Paths is the gateway's normalization of paths, which comes first.
	Paths Paths
	// anyPathCharacter: operators of path templates take all characters, as gRPC servers do.
	anyPathCharacter bool
}

// AuthorizationPolicy is an object with its spec.
type AuthorizationPolicy struct {
	Namespace, Name string
	DryRun          bool
	*security.AuthorizationPolicy
}

// AuthorizationProvider is an extension provider. A policy that names another is refused by it.
type AuthorizationProvider struct {
	// HTTP: it decides about requests only.
	HTTP bool
	// Open: calls are let in where it fails.
	Open   bool
	Answer func(Call) Answer
}

// admits reports whether a provider lets a call in.
func (p *AuthorizationProvider) admits(c Call) bool {
	switch p.Answer(c) {
	case Admits:
		return true
	case Fails:
		return p.Open
	default:
		return false
	}
}

// Decision is the result of a call.
type Decision struct {
	Admitted bool
	// By is the reason, for people.
	By string
	// Claims are the claims of the token that a Gate has found, nil without a token.
	Claims map[string]any
	// Headers and Path are those of the request after a Gate has admitted it.
	Headers map[string]string
	Path    string
}

// Decide judges a call to a proxy: by CUSTOM policies, then DENY policies, then ALLOW policies. If
// there are ALLOW policies, one must match.
func (a *Authorization) Decide(p Proxy, c Call) Decision {
	if c.Request != nil {
		own, taken := *c.Request, false
		if own.Path, taken = a.Paths.Of(own.Path); !taken {
			return Decision{By: "there is no such path"}
		}
		c.Request = &own
	}
	policies := a.of(p)
	if d, refused := a.custom(policies, c); refused {
		return d
	}
	allowing := false
	for _, o := range policies {
		if o.GetAction() == security.AuthorizationPolicy_DENY && a.matches(o, c) {
			return Decision{By: fmt.Sprintf("%s/%s denies it", o.Namespace, o.Name)}
		}
	}
	for _, o := range policies {
		if o.GetAction() == security.AuthorizationPolicy_ALLOW {
			allowing = true
			if a.matches(o, c) {
				return Decision{Admitted: true, By: fmt.Sprintf("%s/%s allows it", o.Namespace, o.Name)}
			}
		}
	}
	return Decision{Admitted: !allowing, By: "no policy is about it"}
}

// of returns the policies that are enforced for a proxy: of its namespace and of the root, that
// select it, or are for the Kubernetes Gateway that it belongs to (S62, S63).
func (a *Authorization) of(p Proxy) (out []*AuthorizationPolicy) {
	for _, o := range a.Policies {
		if !o.DryRun && (o.Namespace == p.Namespace || o.Namespace == RootNamespace) && isFor(o, o.Namespace, p) {
			out = append(out, o)
		}
	}
	return out
}

// targeted is a policy that says which workloads it is for.
type targeted interface {
	GetSelector() *apitype.WorkloadSelector
	GetTargetRef() *apitype.PolicyTargetReference
	GetTargetRefs() []*apitype.PolicyTargetReference
}

// isFor reports whether a policy of a namespace selects a proxy.
func isFor(o targeted, namespace string, p Proxy) bool {
	targets := o.GetTargetRefs()
	if t := o.GetTargetRef(); t != nil {
		targets = append(slices.Clone(targets), t)
	}
	for _, t := range targets {
		if t.GetKind() == "Gateway" && t.GetGroup() == "gateway.networking.k8s.io" && namespace == p.Namespace &&
			t.GetName() == p.Labels["gateway.networking.k8s.io/gateway-name"] {
			return true
		}
	}
	if len(targets) > 0 {
		return false
	}
	for key, value := range o.GetSelector().GetMatchLabels() {
		if got, ok := p.Labels[key]; !ok || got != value {
			return false
		}
	}
	return true
}

// custom asks the providers of CUSTOM policies that are about a call.
func (a *Authorization) custom(policies []*AuthorizationPolicy, c Call) (Decision, bool) {
	providers := map[string]bool{}
	for _, o := range policies {
		if o.GetAction() == security.AuthorizationPolicy_CUSTOM {
			providers[o.GetProvider().GetName()] = true
		}
	}
	for _, o := range policies {
		if o.GetAction() != security.AuthorizationPolicy_CUSTOM || !a.matches(o, c) {
			continue
		}
		name := o.GetProvider().GetName()
		provider := a.Providers[name]
		usable := provider != nil && (len(providers) == 1 || a.ManyProviders)    // S44, S45
		if usable && (provider.HTTP && c.Request == nil || provider.admits(c)) { // S43
			continue
		}
		return Decision{By: fmt.Sprintf("provider %q, for %s/%s, refuses it", name, o.Namespace, o.Name)}, true
	}
	return Decision{}, false
}

// matches reports whether a rule of a policy is about a call.
func (a *Authorization) matches(o *AuthorizationPolicy, c Call) bool {
	r := ruleReader{of: a, policy: o, call: c}
	return slices.ContainsFunc(o.GetRules(), r.matches)
}
