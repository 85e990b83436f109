// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"slices"

	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1alpha3"
)

// resolveRules returns the HTTP rules of a VirtualService with the full names of destinations and
// gateways. Rules without short names are shared with the spec.
func resolveRules(v *virtualService, domain string) []*networking.HTTPRoute {
	var out []*networking.HTTPRoute
	for _, r := range v.spec.GetHttp() {
		if !resolved(r, v.namespace, domain) {
			r = proto.CloneOf(r)
			for d := range destinationsIn(r) {
				d.Host = string(resolveHost(d.GetHost(), v.namespace, domain))
			}
			for _, m := range r.GetMatch() {
				m.Gateways = resolveGateways(m.GetGateways(), v.namespace)
			}
		}
		out = append(out, r)
	}
	return out
}

// resolved reports whether a rule contains full names only.
func resolved(r *networking.HTTPRoute, namespace, domain string) bool {
	for d := range destinationsIn(r) {
		if string(resolveHost(d.GetHost(), namespace, domain)) != d.GetHost() {
			return false
		}
	}
	return !slices.ContainsFunc(r.GetMatch(), func(m *networking.HTTPMatchRequest) bool {
		return !slices.Equal(resolveGateways(m.GetGateways(), namespace), m.GetGateways())
	})
}

// destinationsIn yields the destinations and mirrors of a rule.
func destinationsIn(r *networking.HTTPRoute) func(func(*networking.Destination) bool) {
	return func(yield func(*networking.Destination) bool) {
		for _, d := range r.GetRoute() {
			if d.GetDestination() != nil && !yield(d.GetDestination()) {
				return
			}
		}
		if r.GetMirror() != nil && !yield(r.GetMirror()) {
			return
		}
		for _, m := range r.GetMirrors() {
			if m.GetDestination() != nil && !yield(m.GetDestination()) {
				return
			}
		}
	}
}

// rulesOf returns the HTTP rules of a VirtualService with full names. The rules of a delegate
// replace the rule that includes it. A rule whose delegate is missing or not visible is dropped. A
// rule whose delegate exceeds Limits.Matches is replaced by a rule that answers with 500.
func (x *index) rulesOf(v *virtualService) []*networking.HTTPRoute {
	rules, _ := x.placedRules(v)
	return rules
}

// placedRules returns the rules of rulesOf and the origin of each.
func (x *index) placedRules(v *virtualService) (rules []*networking.HTTPRoute, places []rulePlace) {
	add := func(place rulePlace, list ...*networking.HTTPRoute) {
		for _, r := range list {
			rules, places = append(rules, r), append(places, place)
		}
	}
	j := joining{limit: x.settings.limits.Matches}
	for i, r := range v.rules() {
		d := x.delegateOf(v, r)
		if r.GetDelegate() == nil {
			j.matches += max(1, len(r.GetMatch()))
			add(rulePlace{at: i}, r)
		} else if d != nil {
			joined := j.delegated(r, d.rules())
			if j.over {
				add(rulePlace{i, d, true}, failingRule(r))
				continue
			}
			add(rulePlace{at: i, delegate: d}, joined...)
		}
	}
	return rules, places
}

// matchesOf returns the number of matches in the HTTP rules of a VirtualService and its delegates.
// It is an upper bound for the number of routes.
func (x *index) matchesOf(v *virtualService) int {
	limit, n := x.settings.limits.Matches, v.ownMatches
	for _, r := range v.spec.GetHttp() {
		if d := x.delegateOf(v, r); d != nil {
			own := max(1, len(r.GetMatch()))
			if n += own * d.ownMatches; exceeds(n, limit) {
				n += own - own*d.ownMatches // the rule is replaced by a failing one
			}
		}
	}
	return n
}
