// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"fmt"
	"slices"

	"github.com/pilotkit/pilotkit/registry"
)

// hiddenSubsets adds findings for subsets that clients of some namespace cannot use although the
// rule is visible there, because another rule for the host takes precedence and lacks the subset.
func (f *findings) hiddenSubsets(r *destinationRule) {
	subsets := r.spec.GetSubsets()
	if len(subsets) == 0 || r.selective() {
		return
	}
	hidden := make([]bool, len(subsets))
	for svc := range f.servicesOf(r.host) {
		if svc.Attributes.Namespace != r.namespace && r.namespace != f.settings.rootNamespace() {
			continue // There, a rule applies only to clients in its own namespace.
		}
		for _, namespace := range f.namespacesWithRules(r, svc.Hostname) {
			f.hiddenSubsetsIn(r, svc, namespace, hidden)
		}
	}
}

// hiddenSubsetsIn adds findings for the subsets of a service that clients of a namespace cannot
// use. It skips subsets that are marked as hidden.
func (f *findings) hiddenSubsetsIn(r *destinationRule, svc *registry.Service, namespace string, hidden []bool) {
	counts, _ := f.ruleOf(&proxy{namespace: namespace}, svc.Hostname, svc.Attributes.Namespace)
	for i, s := range r.spec.GetSubsets() {
		if hidden[i] || counts.subset(s.GetName()) != nil {
			continue
		}
		hidden[i] = true
		instead := "a DestinationRule counts instead that is not for all of them"
		if counts != nil {
			instead = fmt.Sprintf("DestinationRule %s counts instead", counts.of[0])
		}
		f.add(element("spec.subsets", i), "clients of namespace %s have no subset %q of %s: there %s",
			namespace, s.GetName(), svc.Hostname, instead)
	}
}

// namespacesWithRules returns the other namespaces that see a rule and have a rule of their own for
// the host, sorted.
func (f *findings) namespacesWithRules(r *destinationRule, host registry.Hostname) (out []string) {
	for other := range f.index.rules.about(lower(host)) {
		if other.namespace != r.namespace && r.visibility.in(other.namespace) && other.visibility.in(other.namespace) {
			out = append(out, other.namespace)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
