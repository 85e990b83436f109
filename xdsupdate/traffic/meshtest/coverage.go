// SPDX-License-Identifier: Apache-2.0

package meshtest

import (
	"fmt"
	"slices"
	"strings"

	networking "istio.io/api/networking/v1alpha3"
	security "istio.io/api/security/v1beta1"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/route"
)

// kindOf returns the kind of a name, such as "VirtualService".
func kindOf(name string) (configstore.GroupVersionKind, bool) {
	for _, s := range istio.Schemas().All() {
		if s.GroupVersionKind.Kind == name {
			return s.GroupVersionKind, true
		}
	}
	return configstore.GroupVersionKind{}, false
}

// NotReached returns the rules of VirtualServices and AuthorizationPolicies that no case has
// reached, as "KIND NAMESPACE/NAME, FIELD" with the name of the rule, sorted. Rules that delegate
// are left out, because the rules of their delegates count in the VirtualService that includes
// them; delegates are not listed.
func NotReached(configs []configstore.Config, results []Result) (out []string) {
	reached := make(map[string]bool)
	for _, r := range results {
		for _, rule := range r.Reached {
			name, _, _ := strings.Cut(rule, ` "`)
			reached[name] = true
		}
	}
	for _, c := range configs {
		for i, field := range rulesOf(c) {
			o := route.Origin{Kind: c.GroupVersionKind.Kind, Namespace: c.Namespace, Name: c.Name, Field: field}
			if reached[o.String()] {
				continue
			}
			if spec, ok := c.Spec.(*networking.VirtualService); ok && i < len(spec.GetHttp()) {
				o.Rule = spec.GetHttp()[i].GetName()
			}
			out = append(out, o.String())
		}
	}
	slices.Sort(out)
	return out
}

// rulesOf returns the fields of the rules of an object.
func rulesOf(c configstore.Config) (out []string) {
	switch spec := c.Spec.(type) {
	case *networking.VirtualService:
		if slices.ContainsFunc(spec.GetHttp(), func(r *networking.HTTPRoute) bool { return r.GetDelegate() != nil }) || len(spec.GetHosts()) == 0 {
			return nil
		}
		out = append(out, elements("spec.http", len(spec.GetHttp()))...)
		out = append(out, elements("spec.tls", len(spec.GetTls()))...)
		return append(out, elements("spec.tcp", len(spec.GetTcp()))...)
	case *security.AuthorizationPolicy:
		return elements("spec.rules", len(spec.GetRules()))
	default:
		return nil
	}
}

func elements(field string, n int) (out []string) {
	for i := range n {
		out = append(out, fmt.Sprintf("%s[%d]", field, i))
	}
	return out
}
