// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"slices"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore"
)

// meshGateway stands for all sidecars in a list of gateways.
const meshGateway = "mesh"

// routeScope is the part of a VirtualService that the rules for its routes depend on.
type routeScope struct {
	// delegate: others include its routes.
	delegate bool
	// gateways: it is for gateways only, not for sidecars.
	gateways bool
	// generated: it stands for an object of the Gateway API.
	generated bool
	// tls: it routes by server names.
	tls bool
}

func scopeOf(c configstore.Config, service *networking.VirtualService) routeScope {
	named := func(m *networking.TLSMatchAttributes) bool { return len(m.GetSniHosts()) > 0 }
	return routeScope{
		delegate:  len(service.Hosts) == 0,
		gateways:  len(service.Gateways) > 0 && !slices.Contains(service.Gateways, meshGateway),
		generated: c.Annotations[routeSemanticsAnnotation] == gatewaySemantics,
		tls: slices.ContainsFunc(service.Tls, func(r *networking.TLSRoute) bool {
			return slices.ContainsFunc(r.GetMatch(), named)
		}),
	}
}
