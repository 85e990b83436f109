// SPDX-License-Identifier: Apache-2.0

package serviceentry

import "github.com/pilotkit/pilotkit/registry"

// defaultTrustDomain is that of Istio 1.30's mesh config.
const defaultTrustDomain = "cluster.local"

// Mesh is what the registry needs to know of the mesh.
type Mesh struct {
	// TrustDomain is the first part of every identity. Empty means
	// "cluster.local".
	TrustDomain string
	// Visibility limits who may see the services of a namespace. The first rule
	// that applies counts; services to which none applies are not limited.
	Visibility []VisibilityRule
}

// VisibilityRule limits the services of some namespaces. It is one policy of
// serviceEntryVisibility in Istio 1.30's mesh config.
type VisibilityRule struct {
	// Namespaces holds for the namespaces of which all labels of one of these
	// sets are labels; empty labels hold for every namespace. No set at all means
	// every namespace, known or not.
	Namespaces []registry.Labels
	// Matches decides instead of Namespaces, if it is not nil, for the labels of a
	// namespace; those of an unknown namespace are nil. It must be a pure
	// function.
	Matches func(namespaceLabels registry.Labels) bool
	// Visibility is VisibilityPublic, VisibilityPrivate or VisibilityNone. Empty
	// means VisibilityPublic.
	Visibility registry.Visibility
}

// Namespace is what the registry needs to know of a namespace.
type Namespace struct {
	Name   string
	Labels registry.Labels
	// Annotations may hold networking.istio.io/traffic-distribution, which then
	// holds for all services of the namespace that have none of their own.
	Annotations map[string]string
}

// applies reports whether the rule is meant for a namespace with these labels.
func (r VisibilityRule) applies(labels registry.Labels) bool {
	if r.Matches != nil {
		return r.Matches(labels)
	}
	for _, l := range r.Namespaces {
		if l.SubsetOf(labels) {
			return true
		}
	}
	return len(r.Namespaces) == 0
}

func (m Mesh) trustDomain() string {
	if m.TrustDomain == "" {
		return defaultTrustDomain
	}
	return m.TrustDomain
}

// visibility returns the limit for the services of a namespace with these labels,
// "" if there is none.
func (m Mesh) visibility(labels registry.Labels) registry.Visibility {
	for _, r := range m.Visibility {
		if !r.applies(labels) {
			continue
		}
		if r.Visibility == registry.VisibilityPublic {
			return ""
		}
		return r.Visibility
	}
	return ""
}
