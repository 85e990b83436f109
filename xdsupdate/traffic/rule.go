// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/registry"
)

// rule is what DestinationRules of one namespace that are for the same host,
// workloads and namespaces come to. It is immutable.
type rule struct {
	// of are the DestinationRules, the oldest first; not empty.
	of []*destinationRule
	// policy is that of the oldest rule that has one.
	policy *networking.TrafficPolicy
	// subsets are those of all rules; of several with one name that of the oldest.
	subsets []*networking.Subset
	byName  map[string]*networking.Subset
	// origins are the positions of the subsets' DestinationRules among of.
	origins map[*networking.Subset]int
	// policyBytes is the size of the policy, 0 for a small one.
	policyBytes int
	// hashEntries is how many entries the ring or table of a cluster with the policy has.
	hashEntries int
	// subsetsOf are the sizes of the DestinationRules' subsets.
	subsetsOf []subsetsSize
}

// newRules merges DestinationRules of one host and namespace, which are in order.
// What differs in visibility or workloads stays apart.
func newRules(list []*destinationRule) []*rule {
	var out []*rule
	merged := make(map[string]*rule, 1)
	for _, r := range list {
		m := merged[r.alike]
		if m == nil {
			m = &rule{}
			merged[r.alike] = m
			out = append(out, m)
		}
		m.add(r)
	}
	for _, m := range out {
		m.measure()
	}
	return out
}

// measure computes the sizes of a rule that is complete.
func (m *rule) measure() {
	if m.policyBytes = bytesOf(m.policy); m.policyBytes <= smallPolicy {
		m.policyBytes = 0
	}
	m.hashEntries = hashEntries(m.policy)
	m.subsetsOf = make([]subsetsSize, len(m.of))
	for _, s := range m.subsets {
		of := &m.subsetsOf[m.origins[s]]
		of.count++
		of.bytes += m.policyBytes
		if n := bytesOf(s.GetTrafficPolicy()); n > smallPolicy {
			of.bytes += n
		}
		of.hashEntries += max(m.hashEntries, hashEntries(s.GetTrafficPolicy()))
	}
}

// add adds a DestinationRule, which is younger than those before.
func (m *rule) add(r *destinationRule) {
	m.of = append(m.of, r)
	if m.policy == nil {
		m.policy = r.spec.GetTrafficPolicy()
	}
	for _, s := range r.spec.GetSubsets() {
		if m.subset(s.GetName()) == nil {
			if m.byName == nil {
				m.byName, m.origins = make(map[string]*networking.Subset), make(map[*networking.Subset]int)
			}
			m.origins[s] = len(m.of) - 1
			m.byName[s.GetName()] = s
			m.subsets = append(m.subsets, s)
		}
	}
}

// subset returns the subset of a name, or nil.
func (m *rule) subset(name string) *networking.Subset {
	if m == nil {
		return nil
	}
	return m.byName[name]
}

// subsetNames returns the names of the subsets, in order; m may be nil.
func (m *rule) subsetNames() []string {
	if m == nil {
		return nil
	}
	out := make([]string, 0, len(m.subsets))
	for _, s := range m.subsets {
		out = append(out, s.GetName())
	}
	return out
}

// trafficPolicy returns the policy of the rule's own; m may be nil.
func (m *rule) trafficPolicy() *networking.TrafficPolicy {
	if m == nil {
		return nil
	}
	return m.policy
}

// selective reports whether the rule is for some workloads only; m may be nil.
func (m *rule) selective() bool { return m != nil && m.of[0].selective() }

// chooseRule returns which of the rules of a host, in order, is for a client of a
// namespace: the first whose workload selector fits, or else the last one without a
// selector (which of several that differ in visibility is Istio 1.30's choice).
// Selectors count in the rule's own namespace only. The result may be nil.
func chooseRule(rules []*rule, namespace string, labels registry.Labels) *rule {
	var general *rule
	for _, m := range rules {
		switch r := m.of[0]; {
		case !r.visibility.in(namespace):
		case !r.selective():
			general = m
		case r.namespace == namespace && r.selector.SubsetOf(labels):
			return m
		}
	}
	return general
}
