// SPDX-License-Identifier: Apache-2.0

package gatewayapi

import (
	"fmt"
	"slices"
	"strings"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

func (c *comparison) hasParent(v map[string]any, parent string) bool {
	return slices.Contains(strings.Split(text(v, "annotations", annotationParents), ","), parent)
}

// refusedRule reports whether a rule cannot be served because of an unsupported filter or backend.
func (c *comparison) refusedRule(r *anyRoute, rule *anyRule) bool {
	supported := []gatewayv1.HTTPRouteFilterType{
		gatewayv1.HTTPRouteFilterRequestHeaderModifier, gatewayv1.HTTPRouteFilterResponseHeaderModifier,
		gatewayv1.HTTPRouteFilterRequestRedirect, gatewayv1.HTTPRouteFilterURLRewrite, gatewayv1.HTTPRouteFilterRequestMirror,
		gatewayv1.HTTPRouteFilterCORS,
	}
	for _, f := range rule.filters {
		if !slices.Contains(supported, f.Type) {
			return true
		}
	}
	for _, b := range rule.backends {
		if deref(b.Weight, 1) == 0 {
			continue
		}
		kind := kindOf(b.Kind, kindService)
		if kind == kindService && strings.Contains(string(b.Name), ".") || kind == "Hostname" && b.Namespace != nil {
			return true
		}
		for _, f := range b.Filters {
			if !slices.Contains(supported[:2], f.Type) {
				return true
			}
		}
	}
	return false
}

// badMirror reports whether a rule of a GRPCRoute has a mirror that cannot be resolved.
func (c *comparison) badMirror(r *anyRoute, rule *anyRule) bool {
	for _, f := range rule.filters {
		if r.kind == KindGRPCRoute && f.RequestMirror != nil {
			ref := f.RequestMirror.BackendRef
			ns := namespaceOf(ref.Namespace, r.key().Namespace)
			if ns != r.key().Namespace || c.read[objectRef{kindService, ns, string(ref.Name)}] == nil {
				return true
			}
		}
	}
	return false
}

// ruleRefused is G32 and G33: a rule that cannot be served responds with 500, a mirror that cannot
// be resolved is dropped, and the other rules stay.
func (c *comparison) ruleRefused(r *anyRoute) {
	refused, affected := map[string]bool{}, false
	for i := range r.rules {
		refused[r.rules[i].name] = c.refusedRule(r, &r.rules[i])
		affected = affected || refused[r.rules[i].name] || c.badMirror(r, &r.rules[i])
	}
	if !affected {
		return
	}
	for id, v := range c.got.virtualServices {
		if !c.hasParent(v, r.parent()) {
			continue
		}
		left := c.checkRefused(r, v, refused)
		parents := slices.DeleteFunc(strings.Split(text(v, "annotations", annotationParents), ","), func(p string) bool { return p == r.parent() })
		if len(parents) == 0 {
			delete(c.got.virtualServices, id)
			continue
		}
		v["annotations"].(map[string]any)[annotationParents] = strings.Join(parents, ",")
		v["spec"].(map[string]any)["http"] = left
		delete(v, "creationTimestamp")
		delete(c.want.virtualServices[id], "creationTimestamp")
	}
	for _, parent := range each(c.got.statuses[statusID(r.kind, r.key())]["parents"]) {
		conditions := conditionsOf(parent)
		if !is(conditions, resolvedRefs, "False") && !is(conditions, partiallyInvalid, "True") {
			c.fail("G32", "%s has the conditions %v", r.parent(), conditions)
		}
		if all := !slices.ContainsFunc(r.rules, func(rule anyRule) bool { return !refused[rule.name] }); all &&
			is(conditions, accepted, "True") && is(conditions, partiallyInvalid, "True") {
			c.fail("G32", "%s has no rule left, and is partially invalid: %v", r.parent(), conditions)
		}
	}
	for _, st := range []*state{c.want, c.got} {
		for _, parent := range each(st.statuses[statusID(r.kind, r.key())]["parents"]) {
			for _, kind := range []string{accepted, resolvedRefs, partiallyInvalid} {
				delete(conditionsOf(parent), kind)
			}
		}
		c.forgetCounts(st, r)
	}
}

// checkRefused checks the HTTP routes of a route with rejected rules, and returns the HTTP routes
// of other routes.
func (c *comparison) checkRefused(r *anyRoute, v map[string]any, refused map[string]bool) []any {
	var left []any
	seen := map[string]bool{}
	list, _ := dig(v, "spec", "http").([]any)
	for _, entry := range list {
		route := entry.(map[string]any)
		name := text(route, "name")
		bad, ours := refused[name]
		if !ours {
			left = append(left, entry)
			continue
		}
		seen[name] = true
		if !bad {
			continue
		}
		fails := fmt.Sprint(dig(route, "directResponse", "status")) == "500"
		for _, to := range each(route["route"]) {
			fails = fails || len(to["destination"].(map[string]any)) == 0
		}
		if !fails {
			c.fail("G32", "the rule %s is served: %v", name, route)
		}
	}
	for name := range refused {
		if !seen[name] {
			c.fail("G32", "the rule %s of %s is missing", name, r.parent())
		}
	}
	return left
}

// forgetCounts removes the number of attached routes of a route's parents.
func (c *comparison) forgetCounts(st *state, r *anyRoute) {
	for _, ref := range r.parentRefs {
		id := kindOf(ref.Kind, string(KindGateway)) + "/" + namespaceOf(ref.Namespace, r.key().Namespace) + "/" + string(ref.Name)
		for _, l := range each(st.statuses[id]["listeners"]) {
			delete(l, "attachedRoutes")
		}
	}
}
