// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
)

// Kinds returns the kinds of configs that this package implements.
func Kinds() []configstore.GroupVersionKind {
	return []configstore.GroupVersionKind{
		istio.VirtualService, istio.DestinationRule, istio.Gateway, istio.Sidecar, istio.AuthorizationPolicy,
		istio.PeerAuthentication, istio.RequestAuthentication,
	}
}

// SameConfig reports whether two revisions of a config, both possibly nil, are equivalent to
// clients. It ignores status, and labels and annotations that do not change the config's meaning.
func SameConfig(a, b *configstore.Config) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a == b || a.CreationTimestamp.Equal(b.CreationTimestamp) && configstore.EqualMessage(a.Spec, b.Spec) && sameMeaning(a, b)
}

// sameMeaning reports whether the labels and annotations of two revisions agree on the config's
// meaning: path matching, dry run, and the Kubernetes objects that the config was generated from.
func sameMeaning(a, b *configstore.Config) bool {
	for _, key := range []string{
		DryRunAnnotation, gatewaySemanticsAnnotation, gatewayServiceAnnotation, parentNamespaceAnnotation, istio.AnnotationBackendCertificate,
	} {
		if a.Annotations[key] != b.Annotations[key] {
			return false
		}
	}
	return MatchesElements(a) == MatchesElements(b) && StandsForRoutes(a) == StandsForRoutes(b) && standsForPolicies(a) == standsForPolicies(b) &&
		a.Labels[gatewayLabel] == b.Labels[gatewayLabel]
}
