// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
)

// semanticsAnnotation is the origin of a generated VirtualService: "gateway" for objects of the
// Gateway API, "ingress" for Ingresses (Istio 1.30).
const semanticsAnnotation = "internal.istio.io/route-semantics"

// MatchesElements reports whether path prefixes in a config match whole path elements, as in the
// Gateway API and in Ingresses.
func MatchesElements(c *configstore.Config) bool {
	return StandsForRoutes(c) || c.GroupVersionKind == istio.VirtualService && c.Annotations[semanticsAnnotation] == "ingress"
}

// StandsForRoutes reports whether a config is a VirtualService generated from routes of the Gateway
// API.
func StandsForRoutes(c *configstore.Config) bool {
	return c.GroupVersionKind == istio.VirtualService && c.Annotations[semanticsAnnotation] == "gateway"
}
