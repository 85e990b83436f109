// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"net/http"
	"slices"

	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/hostname"
)

// resolveRules returns the HTTP rules of a VirtualService with the full names of destinations and
// gateways. Rules without short names are shared with the spec.
func resolveRules(v *VirtualService, domain string) []*networking.HTTPRoute {
	var out []*networking.HTTPRoute
	for _, r := range v.Spec.GetHttp() {
		if !resolved(r, v.Namespace, domain) {
			r = proto.CloneOf(r)
			for d := range DestinationsIn(r) {
				d.Host = string(hostname.Resolve(d.GetHost(), v.Namespace, domain))
			}
			for _, m := range r.GetMatch() {
				m.Gateways = ResolveGateways(m.GetGateways(), v.Namespace)
			}
		}
		out = append(out, r)
	}
	return out
}

// resolved reports whether a rule contains full names only.
func resolved(r *networking.HTTPRoute, namespace, domain string) bool {
	for d := range DestinationsIn(r) {
		if string(hostname.Resolve(d.GetHost(), namespace, domain)) != d.GetHost() {
			return false
		}
	}
	return !slices.ContainsFunc(r.GetMatch(), func(m *networking.HTTPMatchRequest) bool {
		return !slices.Equal(ResolveGateways(m.GetGateways(), namespace), m.GetGateways())
	})
}

// DestinationsIn yields the destinations and mirrors of a rule.
func DestinationsIn(r *networking.HTTPRoute) func(func(*networking.Destination) bool) {
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

// RulesOf returns the HTTP rules of a VirtualService with full names. The rules of a delegate
// replace the rule that includes it. A rule whose delegate is missing or not visible is dropped. A
// rule whose delegate exceeds Limits.Matches is replaced by a rule that answers with 500.
func (x *Index) RulesOf(v *VirtualService) []*networking.HTTPRoute {
	rules, _ := x.PlacedRules(v)
	return rules
}

// PlacedRules returns the rules of RulesOf and the origin of each.
func (x *Index) PlacedRules(v *VirtualService) (rules []*networking.HTTPRoute, places []RulePlace) {
	add := func(place RulePlace, list ...*networking.HTTPRoute) {
		for _, r := range list {
			rules, places = append(rules, r), append(places, place)
		}
	}
	j := joining{limit: x.Settings.Matches}
	for i, r := range v.Rules() {
		d := x.DelegateOf(v, r)
		if r.GetDelegate() == nil {
			j.matches += max(1, len(r.GetMatch()))
			add(RulePlace{At: i}, r)
		} else if d != nil {
			joined := j.delegated(r, d.Rules())
			if j.over {
				add(RulePlace{i, d, true}, failingRule(r))
				continue
			}
			add(RulePlace{At: i, Delegate: d}, joined...)
		}
	}
	return rules, places
}

// MatchesOf returns the number of matches in the HTTP rules of a VirtualService and its delegates.
// It is an upper bound for the number of routes.
func (x *Index) MatchesOf(v *VirtualService) int {
	limit, n := x.Settings.Matches, v.ownMatches
	for _, r := range v.Spec.GetHttp() {
		if d := x.DelegateOf(v, r); d != nil {
			own := max(1, len(r.GetMatch()))
			if n += own * d.ownMatches; limit > 0 && n > limit {
				n += own - own*d.ownMatches // the rule is replaced by a failing one
			}
		}
	}
	return n
}

// failingRule returns a rule that answers the requests of another rule with 500.
func failingRule(r *networking.HTTPRoute) *networking.HTTPRoute {
	return &networking.HTTPRoute{
		Name: r.GetName(), Match: r.GetMatch(),
		DirectResponse: &networking.HTTPDirectResponse{Status: http.StatusInternalServerError},
	}
}

// RulePlace is the origin of a rule.
type RulePlace struct {
	// At is the position of the rule among the VirtualService's own rules.
	At int
	// Delegate is the delegate that contains the rule. It is nil if the VirtualService itself does.
	Delegate *VirtualService
	// Failing is set if the rule replaces rules that exceed a limit.
	Failing bool
}
