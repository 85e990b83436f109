// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	security "istio.io/api/security/v1beta1"

	"github.com/pilotkit/pilotkit/configstore"
)

// The filters of AuthorizationPolicies.
const (
	httpRBAC  = "envoy.filters.http.rbac"
	tcpRBAC   = "envoy.filters.network.rbac"
	httpAuthz = "envoy.filters.http.ext_authz"
	tcpAuthz  = "envoy.filters.network.ext_authz"
)

// refusedPolicy returns the reason why we reject an AuthorizationPolicy that Istio accepts, or "":
// rules that are null (S55, rejected by the reader), and attributes with a valid prefix only, or
// with an empty name in brackets (S58, S65).
func refusedPolicy(ours result) string {
	if slices.ContainsFunc(ours.Messages, func(m string) bool { return nullRule.MatchString(m) }) {
		return outcomeUnparsable
	}
	policy, _ := ours.spec.(*security.AuthorizationPolicy)
	for _, rule := range policy.GetRules() {
		for _, c := range rule.GetWhen() {
			attribute, index, indexed := strings.Cut(c.GetKey(), "[")
			indexable := attribute == "request.headers" || attribute == "request.auth.claims" || strings.HasPrefix(attribute, "experimental.")
			if indexed && (!indexable || attribute == "request.auth.claims" && strings.Contains("["+index, "[]")) {
				return outcomeInvalid
			}
		}
	}
	return ""
}

var nullRule = regexp.MustCompile(`AuthorizationPolicy .*spec\.rules\[\d+\]: must be an object, is null`)

// isAuthorization reports whether a filter is one of them.
func isAuthorization(name string) bool {
	return slices.Contains([]string{httpRBAC, denyRBAC, tcpRBAC, httpAuthz, tcpAuthz}, name)
}

// eachAuthorization visits the configurations of the filters of AuthorizationPolicies of a listener.
func eachAuthorization(listener tree, visit func(name string, config tree)) {
	each(listener, func(f tree) {
		if config := object(f, "typedConfig"); config != nil && isAuthorization(text(f, "name")) {
			visit(text(f, "name"), config)
		}
	})
}

// authorizations compares RBAC by meaning (security/README.md, section 4): the names of policies
// except for the provider of CUSTOM ones, the prefixes of statistics, and the nesting of conditions
// are ignored.
func (c *comparison) authorizations() {
	c.servers()
	c.tokens()
	c.s79()
	for _, r := range c.want[routes] {
		each(r, s78)
	}
	for _, l := range c.want[listeners] {
		eachAuthorization(l, func(_ string, config tree) {
			c.refusedByUs(config)
			c.s54(config)
			c.s52(config)
		})
		c.withoutEmptyFilters(l)
	}
	for _, l := range c.got[listeners] {
		// The good state that was there before stays with us.
		eachAuthorization(l, func(_ string, config tree) { c.refusedByUs(config) })
		c.withoutEmptyFilters(l)
		each(l, withoutSource)
		each(l, s95)
	}
	c.both(listeners, func(l tree) {
		eachAuthorization(l, func(name string, config tree) {
			if name == httpAuthz || name == tcpAuthz {
				s60(config)
				return
			}
			drop(config, "shadowRulesStatPrefix", "statPrefix")
			for _, rules := range []string{"rules", "shadowRules"} {
				if r := object(config, rules); r != nil {
					config[rules] = meaning(r)
				}
			}
		})
	})
}

// withoutSource brings the successor of a deprecated field into the older form (T67).
func withoutSource(o tree) {
	if sourced := object(o, "sourcedMetadata"); sourced != nil {
		delete(o, "sourcedMetadata")
		o["metadata"] = sourced["metadataMatcher"]
	}
}

// refusedByUs removes the contribution of an object that we reject, by rows of DECISIONS.md (S55,
// S58, S65).
func (c *comparison) refusedByUs(config tree) {
	for _, rules := range []string{"rules", "shadowRules"} {
		policies := object(object(config, rules), "policies")
		for key := range policies {
			for ref := range c.refused {
				if strings.Contains(key, "ns["+ref.Namespace+"]-policy["+ref.Name+"]-rule[") {
					delete(policies, key)
				}
			}
		}
	}
}

// withoutEmptyFilters removes the filters of actions if we reject all of their policies.
func (c *comparison) withoutEmptyFilters(listener tree) {
	unused := func(f tree) bool {
		config := object(f, "typedConfig")
		if !isAuthorization(text(f, "name")) || config["filterEnabledMetadata"] != nil || len(c.refused) == 0 {
			return false
		}
		enforced, tried := object(config, "rules"), object(config, "shadowRules")
		action := text(enforced, "action")
		return len(object(enforced, "policies"))+len(object(tried, "policies")) == 0 && !c.hasPolicy(action)
	}
	each(listener, func(o tree) {
		for _, list := range []string{"filters", "httpFilters"} {
			keepObjects(o, list, func(f tree) bool { return !unused(f) })
		}
	})
}

// hasPolicy reports whether there is a policy of an action of RBAC.
func (c *comparison) hasPolicy(action string) bool {
	actions := map[string]security.AuthorizationPolicy_Action{
		"": security.AuthorizationPolicy_ALLOW, "LOG": security.AuthorizationPolicy_AUDIT, "DENY": security.AuthorizationPolicy_DENY,
	}
	return slices.ContainsFunc(c.policies, func(p *configstore.Config) bool {
		return p.Spec.(*security.AuthorizationPolicy).GetAction() == actions[action]
	})
}

// s54: the scheme of a principal counts once.
func (c *comparison) s54(config tree) {
	each(config, func(o tree) {
		for _, field := range []string{"exact", "prefix"} {
			if v := text(o, field); strings.HasPrefix(v, "spiffe://spiffe://") {
				o[field] = strings.TrimPrefix(v, "spiffe://")
			}
		}
	})
}

// s52: the principal "*/*" of a request is "*", and a principal is matched at each of its slashes.
func (c *comparison) s52(config tree) {
	each(config, func(o tree) {
		ids := objects(object(o, "andIds"), "ids")
		if len(ids) != 2 {
			return
		}
		issuer, subject := object(object(ids[0], "metadata"), "value"), object(object(ids[1], "metadata"), "value")
		if compact(issuer) == anyText && text(object(subject, "stringMatch"), "exact") == "*" {
			object(ids[1], "metadata")["value"] = clone(issuer)
			return
		}
		from, ofIssuer := claimText(ids[0], "iss")
		to, ofSubject := claimText(ids[1], "sub")
		if !ofIssuer || !ofSubject || from == "*" && to == "*" {
			return
		}
		value := from + "/" + to
		switch {
		case from == "*" && strings.HasPrefix(to, "*"):
			value = to
		case to == "*" && strings.HasSuffix(from, "*"):
			value = from
		}
		var ways []any
		add := func(issuer, subject string) {
			way := clone(tree{"andIds": o["andIds"]})
			ids := objects(object(way, "andIds"), "ids")
			object(ids[0], "metadata")["value"], object(ids[1], "metadata")["value"] = claimValue(issuer), claimValue(subject)
			ways = append(ways, way)
		}
		for i := range len(value) {
			if value[i] == '/' {
				add(value[:i], value[i+1:])
			}
		}
		if strings.HasPrefix(value, "*") {
			add("*", value)
		} else if strings.HasSuffix(value, "*") {
			add(value, "*")
		}
		delete(o, "andIds")
		o["orIds"] = tree{"ids": ways}
	})
}

// claimText returns the value of a policy that a matcher of a claim of tokens was made of.
func claimText(id tree, claim string) (value string, ok bool) {
	m := object(id, "metadata")
	path := objects(m, "path")
	if len(path) != 2 || text(path[1], "key") != claim {
		return "", false
	}
	match := object(object(m, "value"), "stringMatch")
	switch {
	case compact(object(m, "value")) == anyText:
		return "*", true
	case match["prefix"] != nil:
		return text(match, "prefix") + "*", true
	case match["suffix"] != nil:
		return "*" + text(match, "suffix"), true
	}
	return text(match, "exact"), true
}

// claimValue returns the matcher of a claim, as of claimText.
func claimValue(value string) tree {
	match := tree{"exact": value}
	end, suffix := strings.CutPrefix(value, "*")
	start, prefix := strings.CutSuffix(value, "*")
	switch {
	case value == "*":
		match = tree{"safeRegex": tree{"regex": ".+"}}
	case suffix:
		match = tree{"suffix": end}
	case prefix:
		match = tree{"prefix": start}
	}
	return tree{"stringMatch": match}
}

// s95: where a path template that does not match lets in, ours matches also paths that no template of Envoy can take.
func s95(o tree) {
	rules := objects(object(o, "orRules"), "rules")
	if len(rules) != 2 || object(rules[0], "uriTemplate") == nil {
		return
	}
	parts := append(objects(object(rules[1], "andRules"), "rules"), rules[1])
	unusual := slices.ContainsFunc(parts, func(p tree) bool {
		regex := object(object(object(object(p, "notRule"), "urlPath"), "path"), "safeRegex")
		return strings.HasPrefix(text(regex, "regex"), "[-a-zA-Z0-9")
	})
	if unusual {
		delete(o, "orRules")
		o["uriTemplate"] = rules[0]["uriTemplate"]
	}
}

// s78: a claim that is only asked for is any value.
func s78(o tree) {
	if compact(o) == `{"orMatch":{"valueMatchers":[{"listMatch":{"oneOf":{"stringMatch":{}}}},{"stringMatch":{}}]}}` {
		delete(o, "orMatch")
		o["presentMatch"] = true
	}
}

// anyText matches any text that is not empty.
const anyText = `{"stringMatch":{"safeRegex":{"regex":".+"}}}`

// s60: the prefix that enables ext_authz may extend to the end of the provider's name.
func s60(config tree) {
	m := object(object(object(config, "filterEnabledMetadata"), "value"), "stringMatch")
	if p := text(m, "prefix"); p != "" {
		m["prefix"] = strings.TrimSuffix(p, "-ns[")
	}
}

// meaning returns rules in a form that depends on their matches alone.
func meaning(rules tree) tree {
	policies := make(map[string]bool)
	for key, p := range object(rules, "policies") {
		policy, _ := p.(tree)
		provider := ""
		if name, _, ok := strings.Cut(key, "-ns["); ok {
			provider = name
		}
		text := compact([]any{
			provider,
			alternativesOf(objects(policy, "permissions"), "andRules", "orRules", "rules", "notRule"),
			alternativesOf(objects(policy, "principals"), "andIds", "orIds", "ids", "notId"),
		})
		policies[text] = true
	}
	out := tree{"action": rules["action"]}
	if out["action"] == nil {
		out["action"] = "ALLOW"
	}
	var list []any
	for p := range policies {
		list = append(list, p)
	}
	slices.SortFunc(list, func(a, b any) int { return strings.Compare(compact(a), compact(b)) })
	out["policies"] = list
	return out
}

// alternativesOf returns the meaning of a list with at least one match required.
func alternativesOf(list []tree, and, or, elements, not string) any {
	return simplify(tree{or: tree{elements: anys(list)}}, and, or, elements, not)
}

func anys(list []tree) []any {
	out := make([]any, len(list))
	for i, one := range list {
		out[i] = one
	}
	return out
}

// simplify flattens "and" and "or", without duplicates and sorted.
func simplify(m tree, and, or, elements, not string) any {
	for _, op := range []string{and, or} {
		set := object(m, op)
		if set == nil {
			continue
		}
		seen := make(map[string]any)
		for _, one := range objects(set, elements) {
			s := simplify(one, and, or, elements, not)
			inner, same := s.(tree)
			if same && inner[op] != nil {
				for _, v := range inner[op].([]any) {
					seen[compact(v)] = v
				}
				continue
			}
			seen[compact(s)] = s
		}
		return combined(op, seen)
	}
	if inner := object(m, not); inner != nil {
		return tree{not: simplify(inner, and, or, elements, not)}
	}
	each(m, func(o tree) {
		if alternatives := objects(object(o, "orMatch"), "valueMatchers"); alternatives != nil && o["orMatch"] != nil {
			seen := make(map[string]any)
			for _, a := range alternatives {
				seen[compact(a)] = a
			}
			delete(o, "orMatch")
			if len(seen) == 1 {
				for _, only := range seen {
					maps.Copy(o, only.(tree))
				}
				return
			}
			o["orMatch"] = combined("or", seen)
		}
	})
	return m
}

// combined returns elements under an operator, sorted, or a single element without it. "any" among
// others is left out of "and".
func combined(op string, seen map[string]any) any {
	if strings.HasPrefix(op, "and") && len(seen) > 1 {
		delete(seen, `{"any":true}`)
	}
	keys := make([]string, 0, len(seen))
	for k := range seen {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	if len(keys) == 1 {
		return seen[keys[0]]
	}
	list := make([]any, len(keys))
	for i, k := range keys {
		list[i] = seen[k]
	}
	return tree{op: list}
}
