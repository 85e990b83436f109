// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/registry"
)

// gateway is a Gateway. It is immutable.
type gateway struct {
	objectName
	config *configstore.Config
	spec   *networking.Gateway
}

func newGateway(c *configstore.Config) *gateway {
	spec, _ := c.Spec.(*networking.Gateway)
	if spec == nil {
		return nil
	}
	return &gateway{objectName: objectName{c.Namespace, c.Name}, config: c, spec: spec}
}

// selects reports whether routers with these labels are configured by it; those
// of any namespace are.
func (g *gateway) selects(labels registry.Labels) bool {
	return registry.Labels(g.spec.GetSelector()).SubsetOf(labels)
}
