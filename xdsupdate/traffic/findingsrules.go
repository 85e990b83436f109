// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"cmp"
	"fmt"
	"slices"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/internal/excerpt"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/hostname"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/mesh"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/objects"
)

func (f *findings) destinationRule(r *objects.DestinationRule) func() []Effect {
	of := f.Rules.For(r.Namespace, r.Host)
	if !f.some(r.Host, anyService) {
		f.add("spec.host", "no service has the host name %s", r.Host)
		return nil
	}
	if target := f.aliased(r.Host); target != "" {
		f.add("spec.host", "it is another name for %s, whose policies count", target)
		return nil
	}
	if by := replacing(r, of); by != nil {
		f.add("", "DestinationRule %s is younger and for other namespaces, and counts instead", by.Of[len(by.Of)-1])
		return nil
	}
	if !r.Visibility.In(r.Namespace) && r.Namespace != f.settings.RootNamespace() && !f.some(r.Host, func(s *registry.Service) bool { return s.Attributes.Namespace == r.Namespace }) {
		f.add("", "other namespaces see it, but it counts there only for services of its own namespace, and %s is none", r.Host)
		return nil
	}
	f.merged(r, of)
	f.hiddenSubsets(r)
	f.unusedPolicies(r)
	for i, s := range r.Spec.GetSubsets() {
		f.subset(r, objects.Element("spec.subsets", i), s)
	}
	return func() []Effect { return f.effectsOnServices(r) }
}

// effectsOnServices returns an effect for each service of a rule.
func (f *findings) effectsOnServices(r *objects.DestinationRule) (out []Effect) {
	for s := range f.servicesOf(r.Host) {
		seen := r.Visibility
		if r.Namespace != s.Attributes.Namespace && r.Namespace != f.settings.RootNamespace() {
			// For services of other namespaces, a rule applies only to clients in its own
			// namespace.
			if seen = objects.Private(r.Namespace); !r.Visibility.In(r.Namespace) {
				continue
			}
		}
		clients := "clients of " + seen.String()
		if r.Selective() {
			clients += " with the labels " + r.Selector.String()
		}
		out = append(out, Effect{clients, "clusters of " + excerpt.Object("service", s.Attributes.Namespace, string(s.Hostname))})
	}
	slices.SortFunc(out, func(a, b Effect) int { return cmp.Or(cmp.Compare(a.On, b.On), cmp.Compare(a.Clients, b.Clients)) })
	return slices.Compact(out)
}

// replacing returns the rule that takes precedence wherever this one could apply, or nil.
func replacing(r *objects.DestinationRule, of *objects.HostRules) *objects.Rule {
	if r.Selective() || r.OfPolicies() {
		return nil
	}
	own := slices.IndexFunc(of.Merged, func(m *objects.Rule) bool { return slices.Contains(m.Of, r) })
	for _, m := range of.Merged[own+1:] {
		if !m.Selective() && m.Of[0].Visibility.Covers(r.Visibility) {
			return m
		}
	}
	return nil
}

// merged adds findings for settings that an older rule already defines.
func (f *findings) merged(r *objects.DestinationRule, of *objects.HostRules) {
	if r.OfPolicies() {
		return // It only completes the rules of users.
	}
	i := slices.IndexFunc(of.Merged, func(m *objects.Rule) bool { return slices.Contains(m.Of, r) })
	for _, older := range of.Merged[i].Of {
		if older == r {
			return
		}
		if r.Spec.GetTrafficPolicy() != nil && older.Spec.GetTrafficPolicy() != nil {
			f.add("spec.trafficPolicy", "that of DestinationRule %s, which is older, counts", older)
		}
		known := make(map[string]struct{}, len(older.Spec.GetSubsets()))
		for _, s := range older.Spec.GetSubsets() {
			known[s.GetName()] = struct{}{}
		}
		for j, s := range r.Spec.GetSubsets() {
			if _, again := known[s.GetName()]; again {
				f.add(objects.Element("spec.subsets", j), "DestinationRule %s, which is older, has a subset %q", older, s.GetName())
			}
		}
	}
}

// subset adds a finding for a subset without endpoints.
func (f *findings) subset(r *objects.DestinationRule, field string, s *networking.Subset) {
	if len(s.GetLabels()) == 0 {
		return
	}
	labels := registry.Labels(s.GetLabels())
	selected := func(svc *registry.Service) bool {
		for e := range f.world.Endpoints(svc).All() {
			if labels.SubsetOf(e.Attributes().Labels) {
				return true
			}
		}
		return false
	}
	if !f.some(r.Host, selected) {
		f.add(field+".labels", "no endpoint of %s has the labels %s", r.Host, labels)
	}
}

// hiddenSubsets adds findings for subsets that clients of some namespace cannot use although the
// rule is visible there, because another rule for the host takes precedence and lacks the subset.
func (f *findings) hiddenSubsets(r *objects.DestinationRule) {
	subsets := r.Spec.GetSubsets()
	if len(subsets) == 0 || r.Selective() {
		return
	}
	hidden := make([]bool, len(subsets))
	for svc := range f.servicesOf(r.Host) {
		if svc.Attributes.Namespace != r.Namespace && r.Namespace != f.settings.RootNamespace() {
			continue // There, a rule applies only to clients in its own namespace.
		}
		for _, namespace := range f.namespacesWithRules(r, svc.Hostname) {
			f.hiddenSubsetsIn(r, svc, namespace, hidden)
		}
	}
}

// hiddenSubsetsIn adds findings for the subsets of a service that clients of a namespace cannot
// use. It skips subsets that are marked as hidden.
func (f *findings) hiddenSubsetsIn(r *objects.DestinationRule, svc *registry.Service, namespace string, hidden []bool) {
	counts, _ := f.RuleOf(&objects.Proxy{Namespace: namespace}, svc.Hostname, svc.Attributes.Namespace)
	for i, s := range r.Spec.GetSubsets() {
		if hidden[i] || counts.Subset(s.GetName()) != nil {
			continue
		}
		hidden[i] = true
		instead := "a DestinationRule counts instead that is not for all of them"
		if counts != nil {
			instead = fmt.Sprintf("DestinationRule %s counts instead", counts.Of[0])
		}
		f.add(objects.Element("spec.subsets", i), "clients of namespace %s have no subset %q of %s: there %s",
			namespace, s.GetName(), svc.Hostname, instead)
	}
}

// namespacesWithRules returns the other namespaces that see a rule and have a rule of their own for
// the host, sorted.
func (f *findings) namespacesWithRules(r *objects.DestinationRule, host registry.Hostname) (out []string) {
	for other := range f.Rules.About(hostname.Lower(host)) {
		if other.Namespace != r.Namespace && r.Visibility.In(other.Namespace) && other.Visibility.In(other.Namespace) {
			out = append(out, other.Namespace)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// unusedPolicies adds findings for settings of the traffic policies of a rule that have no effect, or
// none at gateways.
func (f *findings) unusedPolicies(r *objects.DestinationRule) {
	for _, p := range r.Policies() {
		f.credentials(p.Field+".tls.credentialName", p.GetTls().GetCredentialName())
		if whole, ok := p.PolicyLevel.(*networking.TrafficPolicy); ok && whole.GetTunnel() != nil {
			f.add(p.Field+".tunnel", "no TCP proxy tunnels connections: those of sidecars are the program's, and gateways send connections as they are")
		}
		if objects.PassesThrough(p.GetLoadBalancer()) {
			f.passedOn(r, p.Field)
		}
	}
}

// passedOn adds a finding for the load balancing PASSTHROUGH of hosts that gateways route to,
// because the original destination of a gateway's connection is the gateway itself.
func (f *findings) passedOn(r *objects.DestinationRule, field string) {
	for _, v := range f.VirtualServices {
		if !v.BoundToGateway() || !r.Visibility.In(v.Namespace) {
			continue
		}
		for host := range f.DestinationsOf(v) {
			if host == r.Host || host.SubsetOf(r.Host) {
				f.add(field+".loadBalancer.simple", "gateways cannot: PASSTHROUGH is to where a client connects, which is the gateway itself, and VirtualService %s routes to %s there",
					v, host)
				return
			}
		}
	}
}

// refusedClusters builds the clusters of all services that a DestinationRule applies to, with the
// policies of this rule alone.
func (f *findings) refusedClusters(r *objects.DestinationRule) {
	alone := objects.NewRules([]*objects.DestinationRule{r})[0]
	for svc := range f.servicesOf(r.Host) {
		f.places(alone, mesh.NewService([]*registry.Service{svc}), false, func(at clusterPlace) bool {
			for _, role := range []objects.Role{objects.SidecarProxy, objects.Router} {
				_, errs := f.checkedCluster(&proxy{Proxy: objects.Proxy{Role: role, Namespace: r.Namespace, Labels: r.Selector}}, at.name(), &at)
				f.addErrors(newLeftOutErrors(errs))
			}
			return true
		})
	}
}
