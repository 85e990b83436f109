// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"fmt"
	"slices"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/hostname"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/objects"
)

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
