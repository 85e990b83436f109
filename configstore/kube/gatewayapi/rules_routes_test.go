// SPDX-License-Identifier: Apache-2.0

package gatewayapi

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// anyRoute contains the common parts of HTTPRoutes and GRPCRoutes.
type anyRoute struct {
	common

	rules []anyRule
}

type anyRule struct {
	name     string // of its routes
	filters  []gatewayv1.HTTPRouteFilter
	backends []gatewayv1.HTTPBackendRef
	regexes  []string
	headers  [][]string // names, by match
}

func (r *anyRoute) key() Key { return keyOf(r.object) }

func (r *anyRoute) parent() string {
	return string(r.kind) + "/" + r.object.GetName() + "." + r.object.GetNamespace()
}

// httpRoutes returns all HTTPRoutes and GRPCRoutes.
func (c *comparison) httpRoutes() []*anyRoute {
	var out []*anyRoute
	name := func(r *anyRoute, given *gatewayv1.SectionName, i int) string {
		return string(deref(given, gatewayv1.SectionName(r.key().Namespace+"."+r.key().Name+"."+strconv.Itoa(i))))
	}
	for _, o := range objects[*gatewayv1.HTTPRoute](c.system) {
		r := &anyRoute{common: commonOf(KindHTTPRoute, o)}
		for i := range o.Spec.Rules {
			spec := &o.Spec.Rules[i]
			rule := anyRule{name: name(r, spec.Name, i), filters: spec.Filters, backends: spec.BackendRefs}
			for _, m := range spec.Matches {
				var headers []string
				if m.Path != nil && deref(m.Path.Type, "") == gatewayv1.PathMatchRegularExpression {
					rule.regexes = append(rule.regexes, deref(m.Path.Value, ""))
				}
				for _, h := range m.Headers {
					headers = append(headers, string(h.Name))
					if deref(h.Type, "") == gatewayv1.HeaderMatchRegularExpression {
						rule.regexes = append(rule.regexes, h.Value)
					}
				}
				for _, q := range m.QueryParams {
					if deref(q.Type, "") == gatewayv1.QueryParamMatchRegularExpression {
						rule.regexes = append(rule.regexes, q.Value)
					}
				}
				rule.headers = append(rule.headers, headers)
			}
			r.rules = append(r.rules, rule)
		}
		out = append(out, r)
	}
	for _, o := range objects[*gatewayv1.GRPCRoute](c.system) {
		r := &anyRoute{common: commonOf(KindGRPCRoute, o)}
		for i := range o.Spec.Rules {
			spec := &o.Spec.Rules[i]
			rule := anyRule{name: name(r, spec.Name, i), filters: httpFilters(spec.Filters)}
			for _, b := range spec.BackendRefs {
				rule.backends = append(rule.backends, gatewayv1.HTTPBackendRef{BackendRef: b.BackendRef, Filters: httpFilters(b.Filters)})
			}
			for _, m := range spec.Matches {
				var headers []string
				if m.Method != nil && deref(m.Method.Type, "") == gatewayv1.GRPCMethodMatchRegularExpression {
					rule.regexes = append(rule.regexes, deref(m.Method.Service, ""), deref(m.Method.Method, ""))
				}
				for _, h := range m.Headers {
					headers = append(headers, string(h.Name))
					if deref(h.Type, "") == gatewayv1.GRPCHeaderMatchRegularExpression {
						rule.regexes = append(rule.regexes, h.Value)
					}
				}
				rule.headers = append(rule.headers, headers)
			}
			r.rules = append(r.rules, rule)
		}
		out = append(out, r)
	}
	return out
}

// ruleRoutes applies the rules of routes.
func (c *comparison) ruleRoutes() {
	for key := range c.namesakes { // G22
		c.forgetRoutes(key)
	}
	for _, r := range c.httpRoutes() {
		c.ruleRefused(r)
		c.ruleExpressions(r)
		for i := range r.rules {
			c.rulePaths(&r.rules[i])
			c.ruleHeaders(r, &r.rules[i])
			c.ruleAlternatives(r, &r.rules[i])
		}
	}
	c.ruleReasons()
	c.ruleServicePorts()
	c.ruleNameOrder()
	c.ruleServerNames()
}

// forgetRoutes is G22: the results of an HTTPRoute and a GRPCRoute of one name are not compared
// with the recording, which has lost one of them. Our state is compared with a fresh start, and
// contains both.
func (c *comparison) forgetRoutes(key Key) {
	for _, st := range []*state{c.want, c.got} {
		for id, v := range st.virtualServices {
			for _, kind := range []Kind{KindHTTPRoute, KindGRPCRoute} {
				if c.hasParent(v, string(kind)+"/"+key.Name+"."+key.Namespace) {
					delete(st.virtualServices, id)
				}
			}
		}
	}
}

// ruleExpressions is G46: a rule with an invalid regular expression is dropped.
func (c *comparison) ruleExpressions(r *anyRoute) {
	dropped := map[string]bool{}
	for _, rule := range r.rules {
		for _, expression := range rule.regexes {
			if _, err := regexp.Compile(expression); err != nil {
				dropped[rule.name] = true
			}
		}
	}
	if len(dropped) == 0 {
		return
	}
	for id, v := range c.want.virtualServices {
		list, _ := dig(v, "spec", "http").([]any)
		if !c.hasParent(v, r.parent()) {
			continue
		}
		list = slices.DeleteFunc(list, func(entry any) bool { return dropped[text(entry.(map[string]any), "name")] })
		v["spec"].(map[string]any)["http"] = list
		if len(dropped) == len(r.rules) {
			parents := slices.DeleteFunc(strings.Split(text(v, "annotations", annotationParents), ","), func(p string) bool { return p == r.parent() })
			v["annotations"].(map[string]any)[annotationParents] = strings.Join(parents, ",")
		}
		if len(list) == 0 {
			delete(c.want.virtualServices, id)
		}
	}
	for _, parent := range each(c.want.statuses[statusID(r.kind, r.key())]["parents"]) {
		conditions := conditionsOf(parent)
		switch {
		case !is(conditions, accepted, "True"):
		case len(dropped) == len(r.rules):
			conditions[accepted] = fmt.Sprint("False UnsupportedValue ", r.object.GetGeneration())
			c.forgetCounts(c.want, r)
			c.forgetCounts(c.got, r)
		default:
			conditions[partiallyInvalid] = fmt.Sprint("True UnsupportedValue ", r.object.GetGeneration())
		}
	}
}

// routesNamed yields the routes of a rule in the recorded VirtualServices.
func (c *comparison) routesNamed(name string, do func(route map[string]any)) {
	for _, v := range c.want.virtualServices {
		for _, route := range each(dig(v, "spec", "http")) {
			if text(route, "name") == name {
				do(route)
			}
		}
	}
}

// rulePaths is G39 and G41: the prefixes of redirects are replaced like those of rewrites, and
// whole paths are literal.
func (c *comparison) rulePaths(rule *anyRule) {
	for _, f := range rule.filters {
		if f.RequestRedirect != nil && f.RequestRedirect.Path != nil && f.RequestRedirect.Path.ReplacePrefixMatch != nil {
			prefix := "/" + strings.Trim(*f.RequestRedirect.Path.ReplacePrefixMatch, "/")
			c.routesNamed(rule.name, func(route map[string]any) { route["redirect"].(map[string]any)["prefixRewrite"] = prefix })
		}
		if f.URLRewrite != nil && f.URLRewrite.Path != nil && f.URLRewrite.Path.ReplaceFullPath != nil {
			literal := strings.Join(strings.Split(*f.URLRewrite.Path.ReplaceFullPath, `\`), `\\`)
			c.routesNamed(rule.name, func(route map[string]any) {
				route["rewrite"].(map[string]any)["uriRegexRewrite"].(map[string]any)["rewrite"] = literal
			})
		}
	}
}

// ruleHeaders is G26: of two matches of one header in different case the first counts. That may
// change the order of routes.
func (c *comparison) ruleHeaders(r *anyRoute, rule *anyRule) {
	again := map[string]bool{}
	for _, names := range rule.headers {
		for i, name := range names {
			if slices.ContainsFunc(names[:i], func(first string) bool { return strings.EqualFold(first, name) }) {
				again[name] = true
			}
		}
	}
	if len(again) == 0 {
		return
	}
	c.routesNamed(rule.name, func(route map[string]any) {
		for _, match := range each(route["match"]) {
			headers, _ := match["headers"].(map[string]any)
			for name := range again {
				delete(headers, name)
			}
		}
	})
	c.sortRoutes(func(v map[string]any) bool { return c.hasParent(v, r.parent()) })
}

// ruleAlternatives is G68: the alternatives of a service or a method end with it.
func (c *comparison) ruleAlternatives(r *anyRoute, rule *anyRule) {
	for _, part := range rule.regexes {
		if r.kind != KindGRPCRoute || !strings.Contains(part, "|") {
			continue
		}
		c.routesNamed(rule.name, func(route map[string]any) {
			for _, match := range each(route["match"]) {
				if uri, ok := match["uri"].(map[string]any); ok {
					uri["regex"] = strings.Replace(text(uri, "regex"), part, "(?:"+part+")", 1)
				}
			}
		})
	}
}

// sortRoutes makes the order of routes in VirtualServices irrelevant.
func (c *comparison) sortRoutes(of func(map[string]any) bool) {
	for _, st := range []*state{c.want, c.got} {
		for _, v := range st.virtualServices {
			if of(v) {
				sortTexts(dig(v, "spec", "http"))
			}
		}
	}
}

// ruleNameOrder is G23: routes of equal age are ordered by name. The order of the recording is
// wrong if one name is a prefix of another.
func (c *comparison) ruleNameOrder() {
	c.sortRoutes(func(v map[string]any) bool {
		parents := strings.Split(text(v, "annotations", annotationParents), ",")
		for _, a := range parents {
			for _, b := range parents {
				kindA, nameA, _ := strings.Cut(a, "/")
				kindB, nameB, _ := strings.Cut(b, "/")
				routeA, nsA := nameA[:strings.LastIndex(nameA, ".")], nameA[strings.LastIndex(nameA, ".")+1:]
				routeB, nsB := nameB[:strings.LastIndex(nameB, ".")], nameB[strings.LastIndex(nameB, ".")+1:]
				x, y := c.read[objectRef{kindA, nsA, routeA}], c.read[objectRef{kindB, nsB, routeB}]
				if a != b && nsA == nsB && strings.HasPrefix(routeA, routeB) && x != nil && y != nil {
					s, t := x.GetCreationTimestamp(), y.GetCreationTimestamp()
					return s.Equal(&t)
				}
			}
		}
		return false
	})
}
