// SPDX-License-Identifier: Apache-2.0

package serviceentry

import "github.com/pilotkit/pilotkit/registry"

// defaultTrustDomain is that of Istio 1.30's mesh config.
const defaultTrustDomain = "cluster.local"

// Mesh is the mesh configuration that the registry needs.
type Mesh struct {
	// TrustDomain is the first part of every identity. Empty means
	// "cluster.local".
	TrustDomain string
	// Visibility limits the visibility of the services of a namespace. The first applicable rule
	// counts. Services without an applicable rule are not limited.
	Visibility []VisibilityRule
}

// VisibilityRule limits the services of some namespaces. It is one policy of
// serviceEntryVisibility in Istio 1.30's mesh config.
type VisibilityRule struct {
	// Namespaces selects the namespaces that have all labels of one of these sets. An empty set
	// selects every namespace. If there is no set at all, the rule applies to every namespace,
	// known or not.
	Namespaces []registry.Labels
	// Matches replaces Namespaces if it is not nil. Its argument is the labels of a namespace, or
	// nil for an unknown namespace. It must be a pure function.
	Matches func(namespaceLabels registry.Labels) bool
	// Visibility is VisibilityPublic, VisibilityPrivate or VisibilityNone. Empty
	// means VisibilityPublic.
	Visibility registry.Visibility
}

// Namespace is the data of a namespace that the registry needs.
type Namespace struct {
	Name   string
	Labels registry.Labels
	// Annotations may contain networking.istio.io/traffic-distribution, which is the default for
	// the services of the namespace.
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
