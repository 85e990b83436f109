// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/internal/xdsbuild"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/mesh"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/objects"
)

// ruleFor is ruleOf for a destination. Its service may be nil.
func (st *state) ruleFor(p *proxy, host registry.Hostname, svc *mesh.Service) *objects.Rule {
	namespace := ""
	if svc != nil {
		host, namespace = svc.Host, svc.Namespace
	}
	m, _ := st.RuleOf(&p.Proxy, host, namespace)
	return m
}

// policyOf returns the traffic policy of a destination, or nil. An unknown subset has the policy of
// the service.
func (st *state) policyOf(p *proxy, host registry.Hostname, svc *mesh.Service, port uint32, subset string) *networking.TrafficPolicy {
	m := st.ruleFor(p, host, svc)
	return xdsbuild.TrafficPolicy(m.TrafficPolicy(), port, m.Subset(subset).GetTrafficPolicy(), st.settings.Mesh)
}

// hashOf returns the consistent hash of a destination, whose key its routes need, or nil if there is
// none, or its DestinationRule is left out.
func (st *state) hashOf(
	p *proxy, host registry.Hostname, svc *mesh.Service, port uint32, subset string,
) *networking.LoadBalancerSettings_ConsistentHashLB {
	m := st.ruleFor(p, host, svc)
	hash := xdsbuild.ConsistentHash(m.TrafficPolicy(), port, m.Subset(subset).GetTrafficPolicy())
	if hash != nil && p.leaving != nil {
		if by, _ := m.Owner(m.Subset(subset)); p.leaves(by.Config, by) != ads.Included {
			return nil
		}
	}
	return hash
}
