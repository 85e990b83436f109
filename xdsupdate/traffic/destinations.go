// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/registry"
)

// destinationsOf returns the hosts that a VirtualService, with its delegates,
// sends requests to, and the ports that it names; 0 stands for none.
func (x *index) destinationsOf(v *virtualService) map[registry.Hostname][]uint32 {
	out := make(map[registry.Hostname][]uint32)
	x.addDestinations(out, v)
	return out
}

func (x *index) addDestinations(out map[registry.Hostname][]uint32, v *virtualService) {
	add := func(d *networking.Destination) {
		if d != nil {
			host := resolveHost(d.GetHost(), v.namespace, x.settings.domain())
			out[host] = append(out[host], d.GetPort().GetNumber())
		}
	}
	for _, r := range v.spec.GetHttp() {
		for _, d := range r.GetRoute() {
			add(d.GetDestination())
		}
		add(r.GetMirror())
		for _, m := range r.GetMirrors() {
			add(m.GetDestination())
		}
		if d := x.delegateOf(v, r); d != nil && !v.delegate() {
			x.addDestinations(out, d)
		}
	}
	for _, r := range v.spec.GetTcp() {
		for _, d := range r.GetRoute() {
			add(d.GetDestination())
		}
	}
	for _, r := range v.spec.GetTls() {
		for _, d := range r.GetRoute() {
			add(d.GetDestination())
		}
	}
}

// delegateOf returns the VirtualService that takes a rule's place, which must be
// exported to the namespace of the root; nil if there is none.
func (x *index) delegateOf(root *virtualService, r *networking.HTTPRoute) *virtualService {
	if r.GetDelegate() == nil {
		return nil
	}
	found := x.delegates[delegateName(root, r)]
	if found == nil || !found.visibility.in(root.namespace) {
		return nil
	}
	return found
}

// delegateName returns the name of the delegate of a rule.
func delegateName(root *virtualService, r *networking.HTTPRoute) objectName {
	name := objectName{r.GetDelegate().GetNamespace(), r.GetDelegate().GetName()}
	if name.namespace == "" {
		name.namespace = root.namespace
	}
	return name
}
