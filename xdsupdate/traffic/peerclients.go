// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"cmp"
	"slices"

	"github.com/pilotkit/pilotkit/internal/xdsbuild"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// Sidecars and gateways follow PeerAuthentications as clients: they use plain text for workloads
// that must not accept mutual TLS.

// someDisabled reports whether some workloads of a namespace do not accept mutual TLS.
func (x *index) someDisabled(namespace string) bool {
	return x.hasPeers() && slices.Contains(x.modes(namespace), disable)
}

// allDisabled reports whether no workload of a namespace accepts mutual TLS (S30).
func (x *index) allDisabled(namespace string) bool {
	return x.hasPeers() && !slices.ContainsFunc(x.modes(namespace), func(m tlsMode) bool { return m != disable })
}

func (x *index) hasPeers() bool { return x.peers.Len() > 0 }

// takesPlaintext returns a predicate for the endpoints of a service that do not accept mutual TLS
// because of a PeerAuthentication. It is nil if there are none. TLS settings of a DestinationRule
// take precedence (S32).
func (x *index) takesPlaintext(u *xdsbuild.Upstream, endpoints *xdsupdate.ServiceEndpoints) func(*registry.Endpoint) bool {
	svc := u.Service
	if !x.hasPeers() || u.Policy.GetTls() != nil || !x.someDisabled(svc.Attributes.Namespace) && (!endpoints.Foreign() || !x.anyDisabled()) {
		return nil
	}
	return func(e *registry.Endpoint) bool {
		a := e.Attributes()
		return x.peerMode(cmp.Or(a.Namespace, svc.Attributes.Namespace), a.Labels, e.EndpointPort).mode == disable
	}
}

// anyDisabled reports whether some workloads in any namespace do not accept mutual TLS.
func (x *index) anyDisabled() bool {
	for namespace := range x.peers.All() {
		if x.someDisabled(namespace) {
			return true
		}
	}
	return false
}

// takesMutualTLS reports whether clusters of a service have to support mutual TLS.
func (x *index) takesMutualTLS(svc *registry.Service, endpoints *xdsupdate.ServiceEndpoints) bool {
	return endpoints.MutualTLS() && (endpoints.Foreign() || !x.allDisabled(svc.Attributes.Namespace))
}

// affects adds the listeners of gRPC servers and, if some workloads do not accept mutual TLS before
// or after the push, the clusters and load assignments of their services.
func (a *peerAuthentication) affects(c *affected) {
	everywhere := a.namespace == c.after.settings.rootNamespace()
	c.serverListeners(c.after.reach(a.namespace), func(*proxy) bool { return true })
	for _, st := range c.states() {
		for _, services := range st.world.hosts() {
			for _, svc := range services {
				if c.peersOf(svc, a.namespace, everywhere) {
					c.upstream(svc)
				}
			}
		}
	}
}

// peersOf reports whether endpoints of a service may be in a namespace where some workloads do not
// accept mutual TLS before or after the push.
func (c *affected) peersOf(svc *registry.Service, namespace string, everywhere bool) bool {
	own := svc.Attributes.Namespace
	return slices.ContainsFunc(c.states(), func(st *state) bool {
		if c.endpointsIn(st, svc).Foreign() {
			return st.anyDisabled()
		}
		return (everywhere || own == namespace) && st.someDisabled(own)
	})
}
