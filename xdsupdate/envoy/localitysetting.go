// SPDX-License-Identifier: Apache-2.0

package envoy

import (
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/internal/topo"
	"github.com/pilotkit/pilotkit/registry"
)

// localitySetting says how the localities of endpoints count. The zero value: not
// at all.
type localitySetting struct {
	distribute []*networking.LocalityLoadBalancerSetting_Distribute
	// failover: endpoints have priorities.
	failover bool
	// labels are those of failoverPriority.
	labels []string
	// regions maps a region to that which takes over for it.
	regions map[string]string
	// zoneAware: priorities are by region only; within one Envoy itself prefers its
	// own zone.
	zoneAware bool
}

// weighted reports whether Envoy uses the weights of localities: those that were
// asked for, and those of endpoints of one priority.
func (s localitySetting) weighted() bool {
	return len(s.distribute) > 0 || s.failover && (len(s.labels) > 0 || len(s.regions) > 0)
}

// distributionLabels are compared for a service that prefers near endpoints.
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

// locality returns the setting that holds: that of the policy, else the preference
// of the service, else that of the mesh. Priorities need outlier detection, unless
// the service asks for them: without it Envoy would never leave the first one.
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

// addRegion adds a failover rule; of several for one region the first holds.
func (s *localitySetting) addRegion(from, to string) {
	if s.regions == nil {
		s.regions = make(map[string]string)
	}
	if _, have := s.regions[from]; !have {
		s.regions[from] = to
	}
}
