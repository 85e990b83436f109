// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"slices"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/objects"
)

func (f *findings) destinationRule(r *objects.DestinationRule) {
	of := f.Rules.For(r.Namespace, r.Host)
	if !f.some(r.Host, anyService) {
		f.add("spec.host", "no service has the host name %s", r.Host)
		return
	}
	if target := f.aliased(r.Host); target != "" {
		f.add("spec.host", "it is another name for %s, whose policies count", target)
		return
	}
	if by := replacing(r, of); by != nil {
		f.add("", "DestinationRule %s is younger and for other namespaces, and counts instead", by.Of[len(by.Of)-1])
		return
	}
	if !r.Visibility.In(r.Namespace) && r.Namespace != f.settings.RootNamespace() && !f.servesIn(r) {
		f.add("", "other namespaces see it, but it counts there only for services of its own namespace, and %s is none", r.Host)
		return
	}
	f.merged(r, of)
	f.hiddenSubsets(r)
	f.unusedPolicies(r)
	for i, s := range r.Spec.GetSubsets() {
		f.subset(r, objects.Element("spec.subsets", i), s)
	}
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

// servesIn reports whether the rule's namespace has a service with the rule's host.
func (f *findings) servesIn(r *objects.DestinationRule) bool {
	return f.some(r.Host, func(s *registry.Service) bool { return s.Attributes.Namespace == r.Namespace })
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
