// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"slices"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/objects"
)

// delegate is virtualService for a delegate.
func (f *findings) delegate(v *objects.VirtualService) func() []Effect {
	var effects []Effect
	for _, root := range f.Finder.Roots(v.ObjectName) {
		for i, r := range root.Spec.GetHttp() {
			if f.DelegateOf(root, r) == v {
				effects = append(effects, Effect{"clients of VirtualService " + root.String(), "in the place of " + objects.Element("spec.http", i)})
			}
		}
	}
	if len(effects) == 0 {
		f.add("", "it has no hosts, and no VirtualService that it is exported to delegates to it")
		return nil
	}
	f.rules(v)
	f.undelegated(v)
	return func() []Effect { return effects }
}

// undelegated adds findings for the rules of a delegate that no VirtualService includes.
func (f *findings) undelegated(v *objects.VirtualService) {
	for i, r := range v.Rules() {
		including := func(root *objects.VirtualService) bool {
			return slices.ContainsFunc(root.Rules(), func(at *networking.HTTPRoute) bool { return f.DelegateOf(root, at) == v && objects.Includes(at, r) })
		}
		if !slices.ContainsFunc(f.Finder.Roots(v.ObjectName), including) {
			f.add(objects.Element("spec.http", i), "no rule that delegates to it has a match for each of its matches")
		}
	}
}

// delegatedHeaders adds a finding for headers of a root's rule if the delegate has headers of its
// own, because the field is inherited as a whole.
func (f *findings) delegatedHeaders(field string, root *networking.HTTPRoute, delegate *objects.VirtualService) {
	if root.GetHeaders() == nil || delegate == nil {
		return
	}
	for i, r := range delegate.Spec.GetHttp() {
		if r.GetHeaders() != nil {
			f.add(field, "%s of the delegate %s has headers of its own, which count instead", objects.Element("spec.http", i), delegate)
			return
		}
	}
}
