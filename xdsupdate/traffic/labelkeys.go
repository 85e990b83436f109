// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"strings"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/registry"
)

// labelKeys returns the keys of the labels that policies look at in proxies.
func (x *index) labelKeys() map[string]struct{} {
	keys := make(map[string]struct{})
	add := func(labels registry.Labels) {
		for key := range labels {
			keys[key] = struct{}{}
		}
	}
	addFailoverKeys(keys, x.settings.mesh.GetLocalityLbSetting())
	for _, v := range x.virtualServices {
		addSourceKeys(keys, v.spec)
	}
	for _, v := range x.delegates {
		addSourceKeys(keys, v.spec)
	}
	for _, found := range x.rules.hosts.All() {
		for _, r := range found.objects {
			add(r.selector)
			for _, setting := range localitySettings(r.spec) {
				addFailoverKeys(keys, setting)
			}
		}
	}
	for _, g := range x.gateways {
		add(g.spec.GetSelector())
	}
	for _, list := range x.sidecars {
		for _, s := range list {
			add(s.selector)
		}
	}
	return keys
}

func addSourceKeys(keys map[string]struct{}, spec *networking.VirtualService) {
	for _, rule := range spec.GetHttp() {
		for _, m := range rule.GetMatch() {
			for key := range m.GetSourceLabels() {
				keys[key] = struct{}{}
			}
		}
	}
}

// addFailoverKeys adds the keys that are compared with the proxy's own labels;
// "key=value" is compared with what it says.
func addFailoverKeys(keys map[string]struct{}, setting *networking.LocalityLoadBalancerSetting) {
	for _, entry := range setting.GetFailoverPriority() {
		if !strings.Contains(entry, "=") {
			keys[entry] = struct{}{}
		}
	}
}

// localitySettings returns those of all levels of a rule.
func localitySettings(r *networking.DestinationRule) []*networking.LocalityLoadBalancerSetting {
	var out []*networking.LocalityLoadBalancerSetting
	add := func(p *networking.TrafficPolicy) {
		out = append(out, p.GetLoadBalancer().GetLocalityLbSetting())
		for _, port := range p.GetPortLevelSettings() {
			out = append(out, port.GetLoadBalancer().GetLocalityLbSetting())
		}
	}
	add(r.GetTrafficPolicy())
	for _, subset := range r.GetSubsets() {
		add(subset.GetTrafficPolicy())
	}
	return out
}
