// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"slices"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/registry"
)

func (r *destinationRule) report(f *findings) {
	of, _ := f.index.rules.hosts.Get(ruleKey{r.namespace, r.host})
	if !f.some(r.host, anyService) {
		f.add("spec.host", "no service has the host name %s", r.host)
		return
	}
	if target := f.aliased(r.host); target != "" {
		f.add("spec.host", "it is another name for %s, whose policies count", target)
		return
	}
	if by := replacing(r, of); by != nil {
		f.add("", "DestinationRule %s is younger and for other namespaces, and counts instead", by.of[len(by.of)-1])
		return
	}
	if !r.visibility.in(r.namespace) && r.namespace != f.settings.rootNamespace() && !f.servesIn(r) {
		f.add("", "other namespaces see it, but it counts there only for services of its own namespace, and %s is none", r.host)
		return
	}
	f.merged(r, of)
	f.hiddenSubsets(r)
	f.unusedPolicies(r)
	for i, s := range r.spec.GetSubsets() {
		f.subset(r, element("spec.subsets", i), s)
	}
}

// replacing returns the rule that takes precedence wherever this one could apply, or nil.
func replacing(r *destinationRule, of *hostRules) *rule {
	if r.selective() || r.ofPolicies() {
		return nil
	}
	own := slices.IndexFunc(of.merged, func(m *rule) bool { return slices.Contains(m.of, r) })
	for _, m := range of.merged[own+1:] {
		if !m.selective() && m.of[0].visibility.covers(r.visibility) {
			return m
		}
	}
	return nil
}

// covers reports whether v includes every namespace of w.
func (v visibility) covers(w visibility) bool {
	return v.public || !w.public && !slices.ContainsFunc(w.namespaces, func(n string) bool { return !v.in(n) })
}

// servesIn reports whether the rule's namespace has a service with the rule's host.
func (f *findings) servesIn(r *destinationRule) bool {
	return f.some(r.host, func(s *registry.Service) bool { return s.Attributes.Namespace == r.namespace })
}

// merged adds findings for settings that an older rule already defines.
func (f *findings) merged(r *destinationRule, of *hostRules) {
	if r.ofPolicies() {
		return // It only completes the rules of users.
	}
	i := slices.IndexFunc(of.merged, func(m *rule) bool { return slices.Contains(m.of, r) })
	for _, older := range of.merged[i].of {
		if older == r {
			return
		}
		if r.spec.GetTrafficPolicy() != nil && older.spec.GetTrafficPolicy() != nil {
			f.add("spec.trafficPolicy", "that of DestinationRule %s, which is older, counts", older)
		}
		known := make(map[string]struct{}, len(older.spec.GetSubsets()))
		for _, s := range older.spec.GetSubsets() {
			known[s.GetName()] = struct{}{}
		}
		for j, s := range r.spec.GetSubsets() {
			if _, again := known[s.GetName()]; again {
				f.add(element("spec.subsets", j), "DestinationRule %s, which is older, has a subset %q", older, s.GetName())
			}
		}
	}
}

// subset adds a finding for a subset without endpoints.
func (f *findings) subset(r *destinationRule, field string, s *networking.Subset) {
	if len(s.GetLabels()) == 0 {
		return
	}
	labels := registry.Labels(s.GetLabels())
	selected := func(svc *registry.Service) bool {
		for e := range f.world.endpoints(svc.Hostname, svc.Attributes.Namespace).All() {
			if labels.SubsetOf(e.Attributes().Labels) {
				return true
			}
		}
		return false
	}
	if !f.some(r.host, selected) {
		f.add(field+".labels", "no endpoint of %s has the labels %s", r.host, labels)
	}
}
