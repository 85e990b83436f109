// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/internal/xdsbuild"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/hostname"
)

// Rule is the merged form of DestinationRules in one namespace for the same host, workloads and
// client namespaces. It is immutable.
type Rule struct {
	// Of are the DestinationRules, the oldest first. There is at least one.
	Of []*DestinationRule
	// policy is the policy of the oldest DestinationRule with a policy.
	policy *networking.TrafficPolicy
	// Subsets are the subsets of all DestinationRules. If several have the same name, the oldest
	// one is used.
	Subsets []*networking.Subset
	byName  map[string]*networking.Subset
	// Origins maps each subset to the index of its DestinationRule in of.
	Origins map[*networking.Subset]int
	// PolicyBytes is the size of the policy. It is 0 for a small one.
	PolicyBytes int
	// HashEntries is the number of entries of the ring or table in a cluster with the policy.
	HashEntries int
	// SubsetsOf are the sizes of the subsets of each DestinationRule.
	SubsetsOf []SubsetsSize
}

// NewRules merges sorted DestinationRules of one host and namespace. Rules with different
// visibility or workloads stay separate.
func NewRules(list []*DestinationRule) []*Rule {
	var out []*Rule
	merged := make(map[string]*Rule, 1)
	for _, r := range list {
		m := merged[r.alike]
		if m == nil {
			m = &Rule{}
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

func (m *Rule) measure() {
	if m.PolicyBytes = bytesOf(m.policy); m.PolicyBytes <= smallPolicy {
		m.PolicyBytes = 0
	}
	m.HashEntries = hashEntries(m.policy)
	m.SubsetsOf = make([]SubsetsSize, len(m.Of))
	for _, s := range m.Subsets {
		of := &m.SubsetsOf[m.Origins[s]]
		of.Count++
		of.Bytes += m.PolicyBytes
		if n := bytesOf(s.GetTrafficPolicy()); n > smallPolicy {
			of.Bytes += n
		}
		of.hashEntries += max(m.HashEntries, hashEntries(s.GetTrafficPolicy()))
	}
}

// add adds a DestinationRule that is younger than those before.
func (m *Rule) add(r *DestinationRule) {
	m.Of = append(m.Of, r)
	if m.policy == nil {
		m.policy = r.Spec.GetTrafficPolicy()
	}
	for _, s := range r.Spec.GetSubsets() {
		if m.Subset(s.GetName()) == nil {
			if m.byName == nil {
				m.byName, m.Origins = make(map[string]*networking.Subset), make(map[*networking.Subset]int)
			}
			m.Origins[s] = len(m.Of) - 1
			m.byName[s.GetName()] = s
			m.Subsets = append(m.Subsets, s)
		}
	}
}

// Subset returns the named subset, or nil.
func (m *Rule) Subset(name string) *networking.Subset {
	if m == nil {
		return nil
	}
	return m.byName[name]
}

// SubsetNames returns the names of the subsets, in order. The receiver may be nil.
func (m *Rule) SubsetNames() []string {
	if m == nil {
		return nil
	}
	out := make([]string, 0, len(m.Subsets))
	for _, s := range m.Subsets {
		out = append(out, s.GetName())
	}
	return out
}

// TrafficPolicy returns the policy without subsets. The receiver may be nil.
func (m *Rule) TrafficPolicy() *networking.TrafficPolicy {
	if m == nil {
		return nil
	}
	return m.policy
}

// Selective reports whether the rule has a workload selector. The receiver may be nil.
func (m *Rule) Selective() bool { return m != nil && m.Of[0].Selective() }

// chooseRule returns the rule for a client among the sorted rules of a host that accept returns true
// for: the first rule whose workload selector matches, or else the last one without a selector (if
// several differ in visibility, as Istio 1.30 chooses). Selectors apply only in the rule's own
// namespace. The result may be nil.
func chooseRule(rules []*Rule, accept func(*DestinationRule) bool, namespace string, labels registry.Labels) *Rule {
	var general *Rule
	for _, m := range rules {
		switch r := m.Of[0]; {
		case !r.Visibility.In(namespace) || !accept(r):
		case !r.Selective():
			general = m
		case r.Namespace == namespace && r.Selector.SubsetOf(labels):
			return m
		}
	}
	return general
}

// Owner returns the DestinationRule and the field that define a subset. For a nil subset it returns
// the owner of the policy of all subsets.
func (m *Rule) Owner(subset *networking.Subset) (owner *DestinationRule, field string) {
	for _, r := range m.Of {
		for i, s := range r.Spec.GetSubsets() {
			if s == subset {
				return r, Element("spec.subsets", i)
			}
		}
		if subset == nil && r.Spec.GetTrafficPolicy() != nil {
			return r, "spec.trafficPolicy"
		}
	}
	return m.Of[0], ""
}

// Costs returns what a rule adds to each port of a service: clusters, bytes of policy, and hash
// entries.
func (m *Rule) Costs() (clusters, bytes, entries int) {
	bytes, entries = m.PolicyBytes, m.HashEntries
	for _, n := range m.SubsetsOf {
		clusters, bytes, entries = clusters+n.Count, bytes+n.Bytes, entries+n.hashEntries
	}
	return clusters, bytes, entries
}

// smallPolicy is the maximum size in bytes of a policy that does not count as a repetition.
const smallPolicy = 512

// hashEntries returns the maximum number of hash entries that a policy costs for one port.
func hashEntries(p *networking.TrafficPolicy) int {
	entries := xdsbuild.HashEntries(p.GetLoadBalancer())
	for _, at := range p.GetPortLevelSettings() {
		entries = max(entries, xdsbuild.HashEntries(at.GetLoadBalancer()))
	}
	return entries
}

// SubsetsSize is the contribution of a DestinationRule's subsets to one port.
type SubsetsSize struct{ Count, Bytes, hashEntries int }

// bytesOf returns the maximum size of a policy in a cluster of one port.
func bytesOf(p *networking.TrafficPolicy) int {
	if p == nil {
		return 0
	}
	ports, most := 0, 0
	for _, at := range p.GetPortLevelSettings() {
		n := proto.Size(at)
		ports, most = ports+n, max(most, n)
	}
	return proto.Size(p) - ports + most
}

// RuleStep is the lookup step that found a rule.
type RuleStep uint8

// The steps of the lookup, in order.
const (
	noRule RuleStep = iota
	clientNamespace
	serviceNamespace
	rootNamespace
)

// String returns the step in words.
func (s RuleStep) String() string {
	switch s {
	case clientNamespace:
		return "the client's namespace"
	case serviceNamespace:
		return "the service's namespace"
	case rootNamespace:
		return "the root namespace"
	default:
		return "none"
	}
}

// RuleOf returns the DestinationRule for a host as a proxy sees it, and the lookup step that found
// it. The namespace is that of the host's service, or "" without a service. The result is nil if
// there is no rule.
//
// If the client's namespace has a rule for the host, the most specific one decides, even if it is
// for other workloads than the proxy. In this case the proxy has no rule (Istio 1.30).
func (x *Index) RuleOf(p *Proxy, host registry.Hostname, namespace string) (*Rule, RuleStep) {
	host = hostname.Lower(host)
	root := x.Settings.RootNamespace()
	own := func(r *DestinationRule) bool {
		// In the root namespace, rules that other namespaces see, too, belong to the last step.
		return r.Visibility.In(p.Namespace) && (p.Namespace != root || r.Visibility.Equal(Private(root)))
	}
	if found := x.Rules.find(p.Namespace, host, own); found != nil {
		return chooseRule(found, own, p.Namespace, p.Labels), clientNamespace
	}
	exported := func(r *DestinationRule) bool { return !r.Visibility.Equal(Private(r.Namespace)) }
	for _, at := range []struct {
		namespace string
		step      RuleStep
	}{{namespace, serviceNamespace}, {root, rootNamespace}} {
		if at.namespace == "" {
			continue
		}
		if m := chooseRule(x.Rules.find(at.namespace, host, exported), exported, p.Namespace, p.Labels); m != nil {
			return m, at.step
		}
	}
	return nil, noRule
}

// PoliciesOf returns the DestinationRules generated from BackendTLSPolicies for a host, as a proxy
// sees them, and the lookup step that found them. The namespace is that of the host's service.
// DestinationRules of users take precedence even if another step finds them (Istio of August 2026,
// within a namespace).
func (x *Index) PoliciesOf(p *Proxy, host registry.Hostname, namespace string) ([]*DestinationRule, RuleStep) {
	for i, at := range []string{p.Namespace, namespace, x.Settings.RootNamespace()} {
		if h := x.Rules.For(at, hostname.Lower(host)); h != nil && len(h.policies) > 0 {
			return h.policies, clientNamespace + RuleStep(i) //nolint:gosec // one of three
		}
	}
	return nil, noRule
}
