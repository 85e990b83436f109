// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"slices"
	"strings"

	security "istio.io/api/security/v1beta1"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/objects"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/rbac"
)

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
	f.uncheckedByServers(a)
	f.identitiesInPlainText(a)
	if f.verifiesTokens(a) && f.verifiesNothing(a.Namespace, &a.PolicyTarget) {
		for _, field := range tokenFields(a.Spec) {
			f.add(field, "gRPC servers verify no tokens: no call to one has what it is about")
		}
	}
}

// uncheckedByServers adds findings for conditions that gRPC servers cannot check.
func (f *findings) uncheckedByServers(a *objects.AuthorizationPolicy) {
	t := rbac.Translator{Trust: f.settings.trust(), Check: checkOf(rbac.GRPC), Problem: func(p rbac.Policy, problem rbac.Problem) {
		if p.Spec.GetAction() == security.AuthorizationPolicy_ALLOW {
			f.add(problem.Field, "on gRPC servers the rule allows nothing: %s", problem.Err)
		} else {
			f.add(problem.Field, "gRPC servers do not look at it, so that the rule is about more: %s", problem.Err)
		}
	}}
	t.ForServer([]rbac.Policy{a.Policy()})
}

// identitiesInPlainText adds a finding for rules about identities if the policy selects a workload
// whose gRPC server would accept plain text (S11).
func (f *findings) identitiesInPlainText(a *objects.AuthorizationPolicy) {
	field := identityField(a.Spec)
	if field == "" || a.Namespace == f.settings.RootNamespace() {
		return
	}
	for _, w := range f.workloadsOf(a.Namespace) {
		if w.grpc && a.Selects(w.labels) && !f.servesMutualTLS(a.Namespace, []registry.Labels{w.labels}, 0) {
			f.add(field, "gRPC servers among the workloads take plain text, in which clients have no identities: there it never matches")
			return
		}
	}
}

// identityField returns the first field of a policy that depends on client identities, or "".
func identityField(spec *security.AuthorizationPolicy) string {
	for i, rule := range spec.GetRules() {
		for j, from := range rule.GetFrom() {
			s := from.GetSource()
			if len(slices.Concat(s.GetPrincipals(), s.GetNotPrincipals(), s.GetNamespaces(), s.GetNotNamespaces(),
				s.GetServiceAccounts(), s.GetNotServiceAccounts(), s.GetTrustDomains(), s.GetNotTrustDomains())) > 0 {
				return objects.Element(objects.Element("spec.rules", i)+".from", j) + ".source"
			}
		}
		for j, c := range rule.GetWhen() {
			switch strings.TrimPrefix(c.GetKey(), "source.") {
			case "principal", "namespace", "serviceAccount", "trustDomain":
				return objects.Element(objects.Element("spec.rules", i)+".when", j)
			}
		}
	}
	return ""
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
