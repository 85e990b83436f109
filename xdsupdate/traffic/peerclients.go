// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"cmp"
	"slices"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// What clients make of PeerAuthentications: with a workload that is not to take mutual TLS they speak
// plain text.

// someDisabled reports whether workloads of a namespace take no mutual TLS.
func (x *index) someDisabled(namespace string) bool {
	return x.hasPeers() && slices.Contains(x.modes(namespace), disable)
}

// allDisabled reports whether no workload of a namespace takes mutual TLS (S30).
func (x *index) allDisabled(namespace string) bool {
	return x.hasPeers() && !slices.ContainsFunc(x.modes(namespace), func(m tlsMode) bool { return m != disable })
}

func (x *index) hasPeers() bool { return x.peers.Len() > 0 }

// takesPlaintext returns what reports of the endpoints of a service whether they take no mutual TLS by a
// PeerAuthentication; nil: of none. A DestinationRule that says what TLS clients speak counts more (S32).
func (x *index) takesPlaintext(u *envoy.Upstream, endpoints *xdsupdate.ServiceEndpoints) func(*registry.Endpoint) bool {
	svc := u.Service
	if !x.hasPeers() || u.Policy.GetTls() != nil || !x.someDisabled(svc.Attributes.Namespace) && (!endpoints.Foreign() || !x.anyDisabled()) {
		return nil
	}
	return func(e *registry.Endpoint) bool {
		a := e.Attributes()
		return x.peerMode(cmp.Or(a.Namespace, svc.Attributes.Namespace), a.Labels, e.EndpointPort).mode == disable
	}
}

// anyDisabled reports whether workloads of some namespace take no mutual TLS.
func (x *index) anyDisabled() bool {
	for namespace := range x.peers.All() {
		if x.someDisabled(namespace) {
			return true
		}
	}
	return false
}

// takesMutualTLS reports whether clusters of a service have to be ready for mutual TLS.
func (x *index) takesMutualTLS(svc *registry.Service, endpoints *xdsupdate.ServiceEndpoints) bool {
	return endpoints.MutualTLS() && (endpoints.Foreign() || !x.allDisabled(svc.Attributes.Namespace))
}

// peers adds what changed PeerAuthentications make a difference in: the listeners of gRPC servers, and, if
// some workloads take no mutual TLS before or after, the clusters and assignments of their services.
func (c *affected) peers(changed ...*peerAuthentication) {
	root := c.after.settings.rootNamespace()
	for _, a := range changed {
		if a == nil {
			continue
		}
		everywhere := a.namespace == root
		c.serverListeners(c.workloadsOf(a.namespace), func(*proxy) bool { return true })
		for _, st := range c.states() {
			for _, services := range st.world.hosts() {
				for _, svc := range services {
					if c.peersOf(svc, a.namespace, everywhere) {
						c.security(svc)
					}
				}
			}
		}
	}
}

// peersOf reports whether endpoints of a service can be of a namespace in which some workloads
// take no mutual TLS, before or after.
func (c *affected) peersOf(svc *registry.Service, namespace string, everywhere bool) bool {
	own := svc.Attributes.Namespace
	return slices.ContainsFunc(c.states(), func(st *state) bool {
		if c.endpointsIn(st, svc).Foreign() {
			return st.anyDisabled()
		}
		return (everywhere || own == namespace) && st.someDisabled(own)
	})
}
