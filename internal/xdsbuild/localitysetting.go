// SPDX-License-Identifier: Apache-2.0

package xdsbuild

import (
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/internal/topo"
	"github.com/pilotkit/pilotkit/registry"
)

// localitySetting determines the effect of endpoints' localities. The zero value ignores
// localities.
type localitySetting struct {
	distribute []*networking.LocalityLoadBalancerSetting_Distribute
	// failover is set if endpoints have priorities.
	failover bool
	// labels are the labels of failoverPriority.
	labels []string
	// regions maps a region to its failover region.
	regions map[string]string
	// zoneAware means that priorities are by region only; within a region Envoy itself prefers its
	// own zone.
	zoneAware bool
}

// weighted reports whether Envoy uses the weights of localities: weights that the policy sets, and
// the weights of endpoints of one priority.
func (s localitySetting) weighted() bool {
	return len(s.distribute) > 0 || s.failover && (len(s.labels) > 0 || len(s.regions) > 0)
}

// distributionLabels returns the labels to compare for a service that prefers near endpoints.
func distributionLabels(d registry.TrafficDistribution) []string {
	switch d {
	case registry.TrafficDistributionPreferSameZone:
		return []string{topo.Network, topo.Region, topo.Zone}
	case registry.TrafficDistributionPreferSameNode:
		return []string{topo.Network, topo.Region, topo.Zone, topo.Node}
	default:
		return nil
	}
}

// locality returns the effective setting: that of the policy, or else the preference of the
// service, or else that of the mesh. Priorities require outlier detection, because without it Envoy
// would never leave the first one. An exception is a service that asks for priorities itself.
func (u *Upstream) locality() localitySetting {
	lb := u.Policy.GetLoadBalancer()
	if zone := lb.GetZoneAwareLbSetting(); zone != nil {
		if zone.GetEnabled() != nil && !zone.GetEnabled().GetValue() {
			return localitySetting{}
		}
		s := localitySetting{zoneAware: true, failover: true, labels: zone.GetFailoverPriority()}
		for _, f := range zone.GetFailover() {
			s.addRegion(f.GetFrom(), f.GetTo())
		}
		return s
	}
	setting := lb.GetLocalityLbSetting()
	if setting == nil {
		if labels := distributionLabels(u.Service.Attributes.TrafficDistribution); labels != nil {
			return localitySetting{failover: true, labels: labels}
		}
		setting = u.Mesh.GetLocalityLbSetting()
	}
	if setting.GetEnabled() != nil && !setting.GetEnabled().GetValue() {
		return localitySetting{}
	}
	if len(setting.GetDistribute()) > 0 {
		return localitySetting{distribute: setting.GetDistribute()}
	}
	if u.Policy.GetOutlierDetection() == nil {
		return localitySetting{}
	}
	s := localitySetting{failover: true, labels: setting.GetFailoverPriority()}
	for _, f := range setting.GetFailover() {
		s.addRegion(f.GetFrom(), f.GetTo())
	}
	return s
}

// addRegion adds a failover rule. The first rule of a region wins.
func (s *localitySetting) addRegion(from, to string) {
	if s.regions == nil {
		s.regions = make(map[string]string)
	}
	if _, have := s.regions[from]; !have {
		s.regions[from] = to
	}
}
