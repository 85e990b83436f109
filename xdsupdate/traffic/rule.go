// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/registry"
)

// rule is the merged form of DestinationRules in one namespace for the same host, workloads and
// client namespaces. It is immutable.
type rule struct {
	// of are the DestinationRules, the oldest first. There is at least one.
	of []*destinationRule
	// policy is the policy of the oldest DestinationRule with a policy.
	policy *networking.TrafficPolicy
	// subsets are the subsets of all DestinationRules. If several have the same name, the oldest
	// one is used.
	subsets []*networking.Subset
	byName  map[string]*networking.Subset
	// origins maps each subset to the index of its DestinationRule in of.
	origins map[*networking.Subset]int
	// policyBytes is the size of the policy. It is 0 for a small one.
	policyBytes int
	// hashEntries is the number of entries of the ring or table in a cluster with the policy.
	hashEntries int
	// subsetsOf are the sizes of the subsets of each DestinationRule.
	subsetsOf []subsetsSize
}

// newRules merges sorted DestinationRules of one host and namespace. Rules with different
// visibility or workloads stay separate.
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

// add adds a DestinationRule that is younger than those before.
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

// subset returns the named subset, or nil.
func (m *rule) subset(name string) *networking.Subset {
	if m == nil {
		return nil
	}
	return m.byName[name]
}

// subsetNames returns the names of the subsets, in order. The receiver may be nil.
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

// trafficPolicy returns the policy without subsets. The receiver may be nil.
func (m *rule) trafficPolicy() *networking.TrafficPolicy {
	if m == nil {
		return nil
	}
	return m.policy
}

// selective reports whether the rule has a workload selector. The receiver may be nil.
func (m *rule) selective() bool { return m != nil && m.of[0].selective() }

// chooseRule returns the rule for a client among the sorted rules of a host: the first rule whose
// workload selector matches, or else the last one without a selector (if several differ in
// visibility, as Istio 1.30 chooses). Selectors apply only in the rule's own namespace. The result
// may be nil.
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
