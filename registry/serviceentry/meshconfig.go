// SPDX-License-Identifier: Apache-2.0

package serviceentry

import (
	"slices"

	meshapi "istio.io/api/mesh/v1alpha1"

	"github.com/pilotkit/pilotkit/registry"
)

// MeshOf returns what a registry needs to know of Istio's mesh configuration, so that a host
// has the settings of the mesh in one place: the same configuration is traffic.Options.Mesh.
// Taken are trustDomain and serviceEntryVisibility, without its applyToSidecars: the rules hold
// for all clients. A selector with an operator that is not known matches nothing. Nil is the
// configuration that sets nothing. It must not be modified afterwards; for a new one call
// UpdateMesh.
func MeshOf(config *meshapi.MeshConfig) Mesh {
	out := Mesh{TrustDomain: config.GetTrustDomain()}
	visibility := config.GetServiceEntryVisibility()
	for _, p := range visibility.GetPolicies() {
		out.Visibility = append(out.Visibility, visibilityRule(p))
	}
	if v := visibility.GetDefaultVisibility(); v != meshapi.ServiceEntryVisibility_VISIBILITY_UNSPECIFIED {
		out.Visibility = append(out.Visibility, VisibilityRule{Visibility: visibilityOf(v)})
	}
	return out
}

func visibilityRule(p *meshapi.ServiceEntryVisibility_Policy) VisibilityRule {
	return VisibilityRule{
		Visibility: visibilityOf(p.GetVisibility()),
		Matches: func(labels registry.Labels) bool {
			return !slices.ContainsFunc(p.GetMatchingRules(), func(r *meshapi.ServiceEntryVisibility_MatchRule) bool {
				return r.GetNamespaceSelector() != nil && !selects(r.GetNamespaceSelector(), labels)
			})
		},
	}
}

func visibilityOf(v meshapi.ServiceEntryVisibility_Visibility) registry.Visibility {
	switch v {
	case meshapi.ServiceEntryVisibility_NONE:
		return registry.VisibilityNone
	case meshapi.ServiceEntryVisibility_NAMESPACE:
		return registry.VisibilityPrivate
	default:
		return registry.VisibilityPublic
	}
}

// selects is the label selector of Kubernetes.
func selects(s *meshapi.LabelSelector, labels registry.Labels) bool {
	if !registry.Labels(s.GetMatchLabels()).SubsetOf(labels) {
		return false
	}
	for _, r := range s.GetMatchExpressions() {
		value, has := labels[r.GetKey()]
		in := has && slices.Contains(r.GetValues(), value)
		ok := false
		switch r.GetOperator() {
		case "In":
			ok = in
		case "NotIn":
			ok = !in
		case "Exists":
			ok = has
		case "DoesNotExist":
			ok = !has
		}
		if !ok {
			return false
		}
	}
	return true
}
