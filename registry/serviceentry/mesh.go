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
	// Matches reports whether the rule applies to a namespace with these labels, which are nil for an
	// unknown namespace. It must be a pure function. A nil Matches applies to every namespace.
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
		if r.Matches != nil && !r.Matches(labels) {
			continue
		}
		if r.Visibility == registry.VisibilityPublic {
			return ""
		}
		return r.Visibility
	}
	return ""
}
