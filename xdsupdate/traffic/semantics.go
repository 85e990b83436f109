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
	if c.GroupVersionKind != istio.VirtualService {
		return false
	}
	semantics := c.Annotations[semanticsAnnotation]
	return semantics == "gateway" || semantics == "ingress"
}
