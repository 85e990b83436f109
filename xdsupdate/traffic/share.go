// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"strings"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// share is what makes a difference in a resource between views: those with equal
// ones share it. Fields that make none are zero.
type share struct {
	role role
	// service and rule are what the name of a cluster stands for. Of merged rules it
	// is the first.
	service *registry.Service
	rule    objectName
	// policy is the first rule that was made of BackendTLSPolicies.
	policy objectName
	// certificate is the credential that the proxy shows to backends.
	certificate string
	// addresses decide the family of names that are looked up.
	addresses string
	// location is that of the proxy, by which endpoints are ordered and filtered.
	location location
	// view counts as a whole, the role is in it.
	view ads.View
}

// location is where a proxy is, and the labels by which it prefers endpoints.
type location struct {
	cluster                   registry.ClusterID
	locality, network, labels string
}

// shareOf returns what makes a difference in a resource.
func (x *provided) shareOf(v ads.View, p *proxy, typeURL, name string) any {
	g, _ := v.Policy.(group)
	switch typeURL {
	case envoy.ClusterType, envoy.LoadAssignmentType:
		s := share{role: p.role}
		at, ok := x.state.clusterPlaceOf(p, name)
		if !ok {
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
		// Routes and listeners do not depend on where the proxy is, but for what it serves.
		g.locality, g.network = "", ""
		if _, inbound, _ := envoy.ParseInboundName(name); !inbound {
			g.server, g.node = "", false
		}
		v.Policy = g
		return share{view: v}
	}
}
