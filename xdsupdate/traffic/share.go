// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"strings"
	"unique"

	"github.com/pilotkit/pilotkit/internal/xdsbuild"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/objects"
)

// clusterShare identifies the views that share a cluster or a load assignment: views with equal values
// receive the same resource. Irrelevant fields are zero.
type clusterShare struct {
	role objects.Role
	// service and rule belong to the name of the cluster. If rules are merged, rule is the first one.
	service *registry.Service
	rule    objects.ObjectName
	// policy is the first DestinationRule generated from BackendTLSPolicies.
	policy objects.ObjectName
	// certificate is the credential that the proxy presents to backends.
	certificate string
	location    unique.Handle[location]
}

// location contains the properties of a proxy that influence its clusters and load assignments.
type location struct {
	// addresses determine the IP family for DNS lookups.
	addresses string
	// The other fields influence the order and selection of endpoints. Labels are those of the group.
	cluster                   registry.ClusterID
	locality, network, labels string
}

// locate sets the locations of the proxy of a view.
func (p *proxy) locate(v ads.View) {
	g, _ := v.Policy.(group)
	addresses := strings.Join(p.addresses, ",")
	p.families = unique.Make(location{addresses: addresses})
	p.location = unique.Make(location{addresses, p.cluster, g.locality, g.network, g.labels})
}

// shareOf returns the identity of the views that share a resource. The place is that of a cluster or
// a load assignment.
func (x *provided) shareOf(v ads.View, p *proxy, typeURL, name string, at *clusterPlace) any {
	if ofCluster(typeURL) {
		return x.clusterShareOf(p, typeURL, at)
	}
	// Routes and listeners do not depend on the proxy's location, except for the inbound
	// listeners of a server.
	g, _ := v.Policy.(group)
	g.locality, g.network = "", ""
	if _, inbound, _ := xdsbuild.ParseInboundName(name); !inbound {
		g.server, g.node = "", false
	}
	v.Policy = g
	return v
}

func (x *provided) clusterShareOf(p *proxy, typeURL string, at *clusterPlace) clusterShare {
	s := clusterShare{role: p.Role}
	if at == nil {
		return s
	}
	s.service, s.location = at.port.Of, p.families
	if at.rule != nil {
		s.rule = at.rule.Of[0].ObjectName
	}
	if policies, _ := x.state.PoliciesOf(&p.Proxy, at.host, at.port.Of.Attributes.Namespace); len(policies) > 0 {
		if s.policy = policies[0].ObjectName; p.Role == objects.Router {
			s.certificate = x.state.routerOf(p).certificate
		}
	}
	if typeURL == envoy.LoadAssignmentType || s.service.Resolution.IsDNS() {
		s.location = p.location
	}
	return s
}
