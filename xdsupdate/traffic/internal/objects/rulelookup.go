// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/hostname"
)

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
		return chooseRule(found, p.Namespace, p.Labels), clientNamespace
	}
	exported := func(r *DestinationRule) bool { return !r.Visibility.Equal(Private(r.Namespace)) }
	for _, at := range []struct {
		namespace string
		step      RuleStep
	}{{namespace, serviceNamespace}, {root, rootNamespace}} {
		if at.namespace == "" {
			continue
		}
		if m := chooseRule(x.Rules.find(at.namespace, host, exported), p.Namespace, p.Labels); m != nil {
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
