// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"maps"
	"slices"
	"strings"

	networking "istio.io/api/networking/v1alpha3"
)

// labelKeys returns the keys of the proxy labels that an object depends on. A key may occur twice.
func (o object) labelKeys() []string {
	switch {
	case o.virtualService != nil:
		return sourceKeys(o.virtualService.spec)
	case o.destinationRule != nil:
		out := slices.Collect(maps.Keys(o.destinationRule.selector))
		for _, balancer := range balancers(o.destinationRule.spec) {
			out = append(out, failoverKeys(balancer.GetLocalityLbSetting())...)
			out = append(out, failoverKeys(balancer.GetZoneAwareLbSetting())...)
		}
		return out
	case o.gateway != nil && o.gateway.owner != (objectName{}):
		return []string{gatewayLabel}
	case o.gateway != nil:
		return slices.Collect(maps.Keys(o.gateway.spec.GetSelector()))
	case o.sidecar != nil:
		return slices.Collect(maps.Keys(o.sidecar.selector))
	case o.authorization != nil:
		return o.authorization.labelKeys()
	case o.requestAuthentication != nil:
		return o.requestAuthentication.labelKeys()
	default:
		return nil
	}
}

func sourceKeys(spec *networking.VirtualService) []string {
	var out []string
	for _, rule := range spec.GetHttp() {
		for _, m := range rule.GetMatch() {
			for key := range m.GetSourceLabels() {
				out = append(out, key)
			}
		}
	}
	for _, route := range spec.GetTcp() {
		for _, m := range route.GetMatch() {
			out = slices.AppendSeq(out, maps.Keys(m.GetSourceLabels()))
		}
	}
	for _, route := range spec.GetTls() {
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
