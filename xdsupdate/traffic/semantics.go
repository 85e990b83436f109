// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
)

// semanticsAnnotation says what a VirtualService stands for: with the value "gateway" for
// objects of the Gateway API, and with "ingress" for Ingresses (Istio 1.30).
const semanticsAnnotation = "internal.istio.io/route-semantics"

// matchesElements reports whether the prefixes of paths in a config match whole elements, as
// those of the Gateway API and of Ingresses do.
func matchesElements(c *configstore.Config) bool {
	return standsForRoutes(c) || c.GroupVersionKind == istio.VirtualService && c.Annotations[semanticsAnnotation] == "ingress"
}

// standsForRoutes reports whether a config is a VirtualService of routes of the Gateway API.
func standsForRoutes(c *configstore.Config) bool {
	return c.GroupVersionKind == istio.VirtualService && c.Annotations[semanticsAnnotation] == "gateway"
}
