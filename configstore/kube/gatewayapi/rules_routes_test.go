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

// anyRoute is what HTTPRoutes and GRPCRoutes have in common for the rules.
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

// httpRoutes are all HTTPRoutes and GRPCRoutes.
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
		}
	}
	c.ruleReasons()
	c.ruleServicePorts()
	c.ruleNameOrder()
	c.ruleServerNames()
}

// forgetRoutes is G22: what HTTPRoutes and GRPCRoutes of one name have is not compared with
// the recording, which has lost one of them. Ours is compared with a fresh start, and names
// both.
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

func (c *comparison) hasParent(v map[string]any, parent string) bool {
	return slices.Contains(strings.Split(text(v, "annotations", annotationParents), ","), parent)
}

// refusedRule reports whether a rule cannot be served: it has a filter or a backend that is
// not supported.
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

// ruleRefused is G32 and G33: a rule that cannot be served is answered with 500, a mirror that
// cannot be resolved is left out, and the other rules stay.
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

// checkRefused checks the routes of a route with rules that are refused, and returns those of
// others.
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

// forgetCounts takes out how many routes the parents of a route have.
func (c *comparison) forgetCounts(st *state, r *anyRoute) {
	for _, ref := range r.parentRefs {
		id := kindOf(ref.Kind, string(KindGateway)) + "/" + namespaceOf(ref.Namespace, r.key().Namespace) + "/" + string(ref.Name)
		for _, l := range each(st.statuses[id]["listeners"]) {
			delete(l, "attachedRoutes")
		}
	}
}

// ruleExpressions is G46: a rule with a regular expression that does not compile is left out.
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

// rulePaths is G39 and G41: prefixes of redirects are replaced as those of rewrites, and whole
// paths are taken literally.
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

// ruleHeaders is G26: of a header that a match has twice, in different case, the first counts.
// That may change the order of routes.
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

// sortRoutes takes the order of routes out of VirtualServices.
func (c *comparison) sortRoutes(of func(map[string]any) bool) {
	for _, st := range []*state{c.want, c.got} {
		for _, v := range st.virtualServices {
			if of(v) {
				sortTexts(dig(v, "spec", "http"))
			}
		}
	}
}

// ruleNameOrder is G23: routes of equal age are ordered by name; where one name begins with
// another one the recording does it wrong.
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

// ruleReasons is G35: of several references that cannot be resolved any gives the reason.
func (c *comparison) ruleReasons() {
	reasons := []string{"RefNotPermitted", "BackendNotFound", reasonInvalidDestination, "InvalidKind", reasonInvalidFilter}
	for id, status := range c.want.statuses {
		theirs, ours := each(status["parents"]), each(c.got.statuses[id]["parents"])
		kind, rest, _ := strings.Cut(id, "/")
		ns, name, _ := strings.Cut(rest, "/")
		if len(theirs) != len(ours) || c.references(objectRef{kind, ns, name}) < 2 {
			continue
		}
		for i := range theirs {
			a, b := strings.Fields(fmt.Sprint(conditionsOf(theirs[i])[resolvedRefs])), strings.Fields(fmt.Sprint(conditionsOf(ours[i])[resolvedRefs]))
			if len(a) == 3 && len(b) == 3 && a[0] == "False" && b[0] == "False" && slices.Contains(reasons, a[1]) && slices.Contains(reasons, b[1]) {
				conditionsOf(theirs[i])[resolvedRefs] = a[0] + " " + b[1] + " " + a[2]
			}
		}
	}
}

// references is how many backends and mirrors a route names.
func (c *comparison) references(ref objectRef) int {
	n := 0
	switch o := c.read[ref].(type) {
	case *gatewayv1.TLSRoute:
		for _, rule := range o.Spec.Rules {
			n += len(rule.BackendRefs)
		}
	case *gatewayv1.TCPRoute:
		for _, rule := range o.Spec.Rules {
			n += len(rule.BackendRefs)
		}
	default:
		for _, r := range c.httpRoutes() {
			if string(r.kind) == ref.Kind && r.key() == (Key{ref.Namespace, ref.Name}) {
				for _, rule := range r.rules {
					n += len(rule.backends) + len(rule.filters)
				}
			}
		}
	}
	return n
}

// ruleServicePorts is G51: a parentRef with a port that the Service does not have matches
// nothing.
func (c *comparison) ruleServicePorts() {
	for id, status := range c.want.statuses {
		rest := strings.Split(id, "/")
		for _, parent := range each(status["parents"]) {
			ref, _ := parent["parentRef"].(map[string]any)
			port, hasPort := ref["port"].(float64)
			ns := text(ref, "namespace")
			if ns == "" {
				ns = rest[1]
			}
			key := Key{ns, text(ref, "name")}
			s := c.converter.services[key]
			if text(ref, "kind") != kindService || !hasPort || s == nil {
				continue
			}
			if _, has := s.ports[int32(port)]; has || !is(conditionsOf(parent), accepted, "True") {
				continue
			}
			fields := strings.Fields(fmt.Sprint(conditionsOf(parent)[accepted]))
			conditionsOf(parent)[accepted] = "False NoMatchingParent " + fields[2]
			for vs, v := range c.want.virtualServices {
				hosts := fmt.Sprint(dig(v, "spec", "hosts"))
				inPort := regexp.MustCompile(fmt.Sprint(`port:`, port, `\b`)).MatchString(fmt.Sprint(dig(v, "spec")))
				if strings.Contains(fmt.Sprint(dig(v, "spec", "gateways")), "mesh") && inPort &&
					hosts == "["+c.converter.serviceHost(key)+"]" && c.hasParent(v, rest[0]+"/"+rest[2]+"."+rest[1]) {
					delete(c.want.virtualServices, vs)
				}
			}
		}
	}
}

// ruleServerNames is G31: hosts of TLSRoutes that a nearer listener has are routed there alone.
func (c *comparison) ruleServerNames() {
	for _, o := range objects[*gatewayv1.Gateway](c.system) {
		for _, l := range o.Spec.Listeners {
			own := gatewayID(parentKey{KindGateway, keyOf(o)}, string(l.Name))
			taken := func(host any) bool {
				return slices.ContainsFunc(o.Spec.Listeners, func(other gatewayv1.Listener) bool {
					a, b := hostOf(string(deref(l.Hostname, ""))), hostOf(string(deref(other.Hostname, "")))
					return other.Name != l.Name && other.Port == l.Port && other.Protocol == l.Protocol && a != b && within(b, a) && within(fmt.Sprint(host), b)
				})
			}
			for id, v := range c.want.virtualServices {
				if dig(v, "spec", "tls") == nil || fmt.Sprint(dig(v, "spec", "gateways")) != "["+own+"]" {
					continue
				}
				spec := v["spec"].(map[string]any)
				hosts := slices.DeleteFunc(spec["hosts"].([]any), taken)
				if spec["hosts"] = hosts; len(hosts) == 0 {
					delete(c.want.virtualServices, id)
				}
				for _, route := range each(spec["tls"]) {
					for _, match := range each(route["match"]) {
						match["sniHosts"] = slices.DeleteFunc(match["sniHosts"].([]any), taken)
					}
				}
			}
		}
	}
}

// rulePolicies is G54 and G55.
func (c *comparison) rulePolicies() {
	policies := objects[*gatewayv1.BackendTLSPolicy](c.system)
	for _, o := range policies {
		status := c.want.statuses[statusID(KindBackendTLSPolicy, keyOf(o))]
		for _, entry := range each(status["ancestors"]) {
			ref := entry["ancestorRef"].(map[string]any)
			if text(ref, "kind") == string(KindGateway) && text(ref, "namespace") == "" {
				for _, g := range objects[*gatewayv1.Gateway](c.system) {
					if g.Name == text(ref, "name") && g.Namespace != o.Namespace {
						ref["namespace"] = g.Namespace
					}
				}
			}
			if text(ref, "kind") == string(KindGateway) || text(ref, "kind") == kindService {
				if c.loses(o, policies) {
					conditionsOf(entry)[accepted] = fmt.Sprint("False Conflicted ", o.Generation)
				}
			}
		}
	}
}

// loses reports whether an older policy is for the same Services.
func (c *comparison) loses(o *gatewayv1.BackendTLSPolicy, policies []*gatewayv1.BackendTLSPolicy) bool {
	return slices.ContainsFunc(policies, func(other *gatewayv1.BackendTLSPolicy) bool {
		older := other.CreationTimestamp.Before(&o.CreationTimestamp) ||
			other.CreationTimestamp.Equal(&o.CreationTimestamp) && keyOf(other).Compare(keyOf(o)) < 0
		return older && other.Namespace == o.Namespace && fmt.Sprint(targetServices(other)) == fmt.Sprint(targetServices(o)) &&
			fmt.Sprint(sections(other, targetServices(o)[0])) == fmt.Sprint(sections(o, targetServices(o)[0]))
	})
}
