// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
)

// semanticsAnnotation is the origin of a generated VirtualService: "gateway" for objects of the
// Gateway API, "ingress" for Ingresses (Istio 1.30).
const semanticsAnnotation = "internal.istio.io/route-semantics"

// matchesElements reports whether path prefixes in a config match whole path elements, as in the
// Gateway API and in Ingresses.
func matchesElements(c *configstore.Config) bool {
	return standsForRoutes(c) || c.GroupVersionKind == istio.VirtualService && c.Annotations[semanticsAnnotation] == "ingress"
}

// standsForRoutes reports whether a config is a VirtualService generated from routes of the Gateway
// API.
func standsForRoutes(c *configstore.Config) bool {
	return c.GroupVersionKind == istio.VirtualService && c.Annotations[semanticsAnnotation] == "gateway"
}
