// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"cmp"

	"github.com/pilotkit/pilotkit/internal/xdsbuild"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/objects"
)

// Sidecars and gateways follow PeerAuthentications as clients: they use plain text for workloads
// that must not accept mutual TLS.

// takesPlaintext returns a predicate for the endpoints of a service that do not accept mutual TLS
// because of a PeerAuthentication. It is nil if there are none. TLS settings of a DestinationRule
// take precedence (S32).
func (st *state) takesPlaintext(u *xdsbuild.Upstream, endpoints *xdsupdate.ServiceEndpoints) func(*registry.Endpoint) bool {
	svc := u.Service
	if !st.HasPeers() || u.Policy.GetTls() != nil || !st.SomeDisabled(svc.Attributes.Namespace) && (!endpoints.Foreign() || !st.AnyDisabled()) {
		return nil
	}
	return func(e *registry.Endpoint) bool {
		a := e.Attributes()
		return st.PeerMode(cmp.Or(a.Namespace, svc.Attributes.Namespace), a.Labels, e.EndpointPort).Mode == objects.Disable
	}
}

// takesMutualTLS reports whether clusters of a service have to support mutual TLS.
func (st *state) takesMutualTLS(svc *registry.Service, endpoints *xdsupdate.ServiceEndpoints) bool {
	return endpoints.MutualTLS() && (endpoints.Foreign() || !st.AllDisabled(svc.Attributes.Namespace))
}
