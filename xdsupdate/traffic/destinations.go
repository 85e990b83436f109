// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/registry"
)

// destinationsOf returns the destinations of a VirtualService and its delegates.
func (x *index) destinationsOf(v *virtualService) destinations {
	out := make(destinations)
	x.addDestinations(out, v, make(map[*virtualService]struct{}))
	return out
}

// destinations are hosts in lower case with the ports that routes name. Port 0 stands for a
// destination without a port.
type destinations map[registry.Hostname]map[uint32]struct{}

// addDestinations adds the destinations of a VirtualService and of its delegates that are not in
// added.
func (x *index) addDestinations(out destinations, v *virtualService, added map[*virtualService]struct{}) {
	add := func(d *networking.Destination) {
		if d != nil {
			host := resolveHost(d.GetHost(), v.namespace, x.settings.domain)
			if out[host] == nil {
				out[host] = make(map[uint32]struct{}, 1)
			}
			out[host][d.GetPort().GetNumber()] = struct{}{}
		}
	}
	for _, r := range v.spec.GetHttp() {
		for d := range destinationsIn(r) {
			add(d)
		}
		if d := x.delegateOf(v, r); d != nil && !v.delegate() {
			if _, again := added[d]; !again {
				added[d] = struct{}{}
				x.addDestinations(out, d, added)
			}
		}
	}
	for _, r := range v.l4Routes() {
		for _, d := range r.to {
			add(d.GetDestination())
		}
	}
}

// delegateOf returns the VirtualService that a rule delegates to. It is nil if there is none or it
// is not exported to the namespace of the root.
func (x *index) delegateOf(root *virtualService, r *networking.HTTPRoute) *virtualService {
	if r.GetDelegate() == nil {
		return nil
	}
	found := named[*virtualService](x, istio.VirtualService, delegateName(root, r))
	if found == nil || !found.delegate() || !found.visibility.in(root.namespace) {
		return nil
	}
	return found
}

func delegateName(root *virtualService, r *networking.HTTPRoute) objectName {
	name := objectName{r.GetDelegate().GetNamespace(), r.GetDelegate().GetName()}
	if name.namespace == "" {
		name.namespace = root.namespace
	}
	return name
}
