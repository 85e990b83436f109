// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"strings"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// share identifies the views that share a resource: views with equal values receive the same
// resource. Irrelevant fields are zero.
type share struct {
	role role
	// service and rule belong to the name of a cluster. If rules are merged, rule is the first one.
	service *registry.Service
	rule    objectName
	// policy is the first DestinationRule generated from BackendTLSPolicies.
	policy objectName
	// certificate is the credential that the proxy presents to backends.
	certificate string
	// addresses determine the IP family for DNS lookups.
	addresses string
	// location is the location of the proxy, which influences the order and selection of endpoints.
	location location
	// view is set if the resource depends on the whole view. It includes the role.
	view ads.View
}

// location is the location of a proxy, with the labels that influence its preference of endpoints.
type location struct {
	cluster                   registry.ClusterID
	locality, network, labels string
}

// shareOf returns the identity of the views that share a resource. The place is that of a cluster or
// a load assignment.
func (x *provided) shareOf(v ads.View, p *proxy, typeURL, name string, at *clusterPlace) any {
	g, _ := v.Policy.(group)
	switch typeURL {
	case envoy.ClusterType, envoy.LoadAssignmentType:
		s := share{role: p.role}
		if at == nil {
			return s
		}
		s.service = at.port.of
		if at.rule != nil {
			s.rule = at.rule.of[0].objectName
		}
		if policies, _ := x.state.policiesOf(p, at.host, at.port.of.Attributes.Namespace); len(policies) > 0 {
			if s.policy = policies[0].objectName; p.role == router {
				s.certificate = x.state.routerOf(p).certificate
			}
		}
		if s.addresses = strings.Join(p.addresses, ","); typeURL == envoy.LoadAssignmentType || s.service.Resolution.IsDNS() {
			s.location = location{p.cluster, g.locality, g.network, g.labels}
		}
		return s
	default:
		// Routes and listeners do not depend on the proxy's location, except for the inbound
		// listeners of a server.
		g.locality, g.network = "", ""
		if _, inbound, _ := envoy.ParseInboundName(name); !inbound {
			g.server, g.node = "", false
		}
		v.Policy = g
		return share{view: v}
	}
}
