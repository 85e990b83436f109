// SPDX-License-Identifier: Apache-2.0

package serviceentry_test

import (
	"testing"

	meshapi "istio.io/api/mesh/v1alpha1"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/serviceentry"
)

// TestMeshOf: the trust domain and the limits of a mesh configuration are those of the
// registry, the first rule that matches first and the default last.
func TestMeshOf(t *testing.T) {
	selector := func(key, operator string, values ...string) *meshapi.LabelSelector {
		return &meshapi.LabelSelector{MatchExpressions: []*meshapi.LabelSelectorRequirement{{Key: key, Operator: operator, Values: values}}}
	}
	policy := func(v meshapi.ServiceEntryVisibility_Visibility, selectors ...*meshapi.LabelSelector) *meshapi.ServiceEntryVisibility_Policy {
		out := &meshapi.ServiceEntryVisibility_Policy{Visibility: v}
		for _, s := range selectors {
			out.MatchingRules = append(out.MatchingRules, &meshapi.ServiceEntryVisibility_MatchRule{
				Matcher: &meshapi.ServiceEntryVisibility_MatchRule_NamespaceSelector{NamespaceSelector: s},
			})
		}
		return out
	}
	mesh := serviceentry.MeshOf(&meshapi.MeshConfig{TrustDomain: "td", ServiceEntryVisibility: &meshapi.ServiceEntryVisibility{
		DefaultVisibility: meshapi.ServiceEntryVisibility_NAMESPACE,
		Policies: []*meshapi.ServiceEntryVisibility_Policy{
			policy(meshapi.ServiceEntryVisibility_NONE, selector("tier", "In", "gone"), selector("tier", "Exists")),
			policy(meshapi.ServiceEntryVisibility_NONE, selector("tier", "Near", "gone")),
			policy(meshapi.ServiceEntryVisibility_PUBLIC, &meshapi.LabelSelector{MatchLabels: map[string]string{"open": "yes"}}),
		},
	}})
	if mesh.TrustDomain != "td" {
		t.Errorf("the trust domain is %q", mesh.TrustDomain)
	}
	for want, labels := range map[registry.Visibility]registry.Labels{
		registry.VisibilityNone: {"tier": "gone"}, registry.VisibilityPublic: {"open": "yes"}, registry.VisibilityPrivate: {"tier": "x"},
	} {
		got := registry.Visibility("no rule")
		for _, r := range mesh.Visibility {
			if r.Matches == nil || r.Matches(labels) {
				got = r.Visibility
				break
			}
		}
		if got != want {
			t.Errorf("namespace with %v: visibility %q, want %q", labels, got, want)
		}
	}
	if empty := serviceentry.MeshOf(nil); empty.TrustDomain != "" || empty.Visibility != nil {
		t.Errorf("MeshOf(nil) = %+v", empty)
	}
}
