// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
)

// kinds returns those that take effect here.
func kinds() []configstore.GroupVersionKind {
	return []configstore.GroupVersionKind{
		istio.VirtualService, istio.DestinationRule, istio.Gateway, istio.Sidecar, istio.AuthorizationPolicy,
		istio.PeerAuthentication, istio.RequestAuthentication,
	}
}

// sameConfig reports whether two states of a config, each of which may be nil, are the
// same to clients: an object's status concerns none, nor do labels and annotations but for
// those that say what it means.
func sameConfig(a, b *configstore.Config) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a == b || a.CreationTimestamp.Equal(b.CreationTimestamp) && configstore.EqualMessage(a.Spec, b.Spec) && sameMeaning(a, b)
}

// sameMeaning reports whether labels and annotations say the same of two states of a config:
// how paths are matched, what is a dry run, what of Kubernetes the config was made of.
func sameMeaning(a, b *configstore.Config) bool {
	for _, key := range []string{
		dryRunAnnotation, gatewaySemanticsAnnotation, gatewayServiceAnnotation, parentNamespaceAnnotation, istio.AnnotationBackendCertificate,
	} {
		if a.Annotations[key] != b.Annotations[key] {
			return false
		}
	}
	return matchesElements(a) == matchesElements(b) && standsForRoutes(a) == standsForRoutes(b) && standsForPolicies(a) == standsForPolicies(b) &&
		a.Labels[gatewayLabel] == b.Labels[gatewayLabel]
}
