// SPDX-License-Identifier: Apache-2.0

package objects

import (
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/hostname"
)

// DestinationsOf returns the destinations of a VirtualService and its delegates.
func (x *Index) DestinationsOf(v *VirtualService) Destinations {
	out := make(Destinations)
	x.addDestinations(out, v, make(map[*VirtualService]struct{}))
	return out
}

// Destinations are hosts in lower case with the ports that routes name. Port 0 stands for a
// destination without a port.
type Destinations map[registry.Hostname]map[uint32]struct{}

// addDestinations adds the destinations of a VirtualService and of its delegates that are not in
// added.
func (x *Index) addDestinations(out Destinations, v *VirtualService, added map[*VirtualService]struct{}) {
	add := func(d *networking.Destination) {
		if d != nil {
			host := hostname.Resolve(d.GetHost(), v.Namespace, x.Settings.Domain)
			if out[host] == nil {
				out[host] = make(map[uint32]struct{}, 1)
			}
			out[host][d.GetPort().GetNumber()] = struct{}{}
		}
	}
	for _, r := range v.Spec.GetHttp() {
		for d := range DestinationsIn(r) {
			add(d)
		}
		if d := x.DelegateOf(v, r); d != nil && !v.Delegate() {
			if _, again := added[d]; !again {
				added[d] = struct{}{}
				x.addDestinations(out, d, added)
			}
		}
	}
	for _, r := range v.L4Routes() {
		for _, d := range r.To {
			add(d.GetDestination())
		}
	}
}

// DelegateOf returns the VirtualService that a rule delegates to. It is nil if there is none or it
// is not exported to the namespace of the root.
func (x *Index) DelegateOf(root *VirtualService, r *networking.HTTPRoute) *VirtualService {
	if r.GetDelegate() == nil {
		return nil
	}
	found := Named[*VirtualService](x, istio.VirtualService, DelegateName(root, r))
	if found == nil || !found.Delegate() || !found.Visibility.In(root.Namespace) {
		return nil
	}
	return found
}

// DelegateName returns the name of the delegate of a rule.
func DelegateName(root *VirtualService, r *networking.HTTPRoute) ObjectName {
	name := ObjectName{r.GetDelegate().GetNamespace(), r.GetDelegate().GetName()}
	if name.Namespace == "" {
		name.Namespace = root.Namespace
	}
	return name
}
