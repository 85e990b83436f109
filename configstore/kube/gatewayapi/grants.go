// SPDX-License-Identifier: Apache-2.0

package gatewayapi

import (
	"slices"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// reference is one side of a reference between objects. The name of the referring side is ignored.
type reference struct{ group, kind, namespace, name string }

// grants reports whether a ReferenceGrant, which is in the namespace of the target, allows a
// reference.
func grants(grant *gatewayv1.ReferenceGrant, from, to reference) bool {
	return slices.ContainsFunc(grant.Spec.From, func(f gatewayv1.ReferenceGrantFrom) bool {
		return string(f.Group) == from.group && string(f.Kind) == from.kind && string(f.Namespace) == from.namespace
	}) && slices.ContainsFunc(grant.Spec.To, func(t gatewayv1.ReferenceGrantTo) bool {
		return string(t.Group) == to.group && string(t.Kind) == to.kind &&
			(t.Name == nil || *t.Name == "" || string(*t.Name) == to.name)
	})
}
