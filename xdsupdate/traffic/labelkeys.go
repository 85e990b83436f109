// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"maps"
	"slices"
	"strings"

	networking "istio.io/api/networking/v1alpha3"
)

func (r *destinationRule) labelKeys() []string {
	out := slices.Collect(maps.Keys(r.selector))
	for _, balancer := range balancers(r.spec) {
		out = append(out, failoverKeys(balancer.GetLocalityLbSetting())...)
		out = append(out, failoverKeys(balancer.GetZoneAwareLbSetting())...)
	}
	return out
}

func (g *gateway) labelKeys() []string { return slices.Collect(maps.Keys(g.router().labels)) }

func (s *sidecar) labelKeys() []string { return slices.Collect(maps.Keys(s.selector)) }

func (*peerAuthentication) labelKeys() []string { return nil }

func (v *virtualService) labelKeys() []string {
	var out []string
	for _, rule := range v.spec.GetHttp() {
		for _, m := range rule.GetMatch() {
			for key := range m.GetSourceLabels() {
				out = append(out, key)
			}
		}
	}
	for _, route := range v.spec.GetTcp() {
		for _, m := range route.GetMatch() {
			out = slices.AppendSeq(out, maps.Keys(m.GetSourceLabels()))
		}
	}
	for _, route := range v.spec.GetTls() {
		for _, m := range route.GetMatch() {
			out = slices.AppendSeq(out, maps.Keys(m.GetSourceLabels()))
		}
	}
	return out
}

// failoverKeys returns the keys of failover priorities that are compared with the proxy's own
// labels. Entries of the form "key=value" are skipped, because they are compared with the value.
func failoverKeys(setting interface{ GetFailoverPriority() []string }) []string {
	var out []string
	for _, entry := range setting.GetFailoverPriority() {
		if !strings.Contains(entry, "=") {
			out = append(out, entry)
		}
	}
	return out
}

// balancers returns the load balancer settings at all levels of a rule.
func balancers(r *networking.DestinationRule) []*networking.LoadBalancerSettings {
	var out []*networking.LoadBalancerSettings
	add := func(p *networking.TrafficPolicy) {
		out = append(out, p.GetLoadBalancer())
		for _, port := range p.GetPortLevelSettings() {
			out = append(out, port.GetLoadBalancer())
		}
	}
	add(r.GetTrafficPolicy())
	for _, subset := range r.GetSubsets() {
		add(subset.GetTrafficPolicy())
	}
	return out
}
