// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	networking "istio.io/api/networking/v1alpha3"
	security "istio.io/api/security/v1beta1"

	"github.com/pilotkit/pilotkit/internal/jwtauthn"
)

// unknownKey is in the key set that Istio sends if keys cannot be fetched. Its private key is
// unknown.
const unknownKey = "0xObjM0UvS_oaazjpEYlAbwctEJ4L8pH3OuTb7qth7gUwqet"

// refusedTokens returns how we refuse a RequestAuthentication that Istio takes, "" if we do not:
// rules without an issuer (S73), and with keys twice or with none (S74, free).
func refusedTokens(ours result) string {
	spec, _ := ours.spec.(*security.RequestAuthentication)
	for _, r := range spec.GetJwtRules() {
		if r.GetIssuer() == "" || r.GetJwks() != "" && (r.GetJwksUri() != "" || strings.Contains(strings.ReplaceAll(r.GetJwks(), " ", ""), `"keys":[]`)) {
			return outcomeInvalid
		}
	}
	return ""
}

// tokens compares the filters of RequestAuthentications by meaning: the providers are a set without
// names (S71), and all keys without a known private key are equal (S72). Contributions of rejected
// objects are left out, also of our last good state (S73, S74).
func (c *comparison) tokens() {
	c.both(listeners, func(l tree) { eachTokens(l, tokenMeaning) })
	for ref, spec := range c.refused {
		refused, ok := spec.(*security.RequestAuthentication)
		if !ok {
			continue
		}
		for _, l := range c.want[listeners] {
			eachTokens(l, func(config tree) { withoutProviders(config, refused) })
		}
		for _, current := range c.authentications {
			if current.Namespace != ref.Namespace || current.Name != ref.Name {
				continue
			}
			for _, l := range c.got[listeners] {
				eachTokens(l, func(config tree) { withoutProviders(config, current.Spec.(*security.RequestAuthentication)) })
			}
		}
	}
	c.both(listeners, func(l tree) {
		each(l, func(o tree) {
			keepObjects(o, "httpFilters", func(f tree) bool {
				return text(f, "name") != jwtauthn.Filter || len(objects(object(f, "typedConfig"), "providers")) > 0
			})
		})
	})
}

// eachTokens visits the configurations of the filters of RequestAuthentications of a listener.
func eachTokens(listener tree, visit func(config tree)) {
	each(listener, func(f tree) {
		if config := object(f, "typedConfig"); config != nil && text(f, "name") == jwtauthn.Filter {
			visit(config)
		}
	})
}

// tokenMeaning replaces names of providers by the sorted list of the providers, if the requirements
// are the expected ones.
func tokenMeaning(config tree) {
	providers := object(config, "providers")
	rules := objects(config, "rules")
	names := slices.Sorted(maps.Keys(providers))
	if len(rules) != 1 || compact(object(rules[0], "match")) != `{"prefix":"/"}` ||
		compact(sortedRequirement(object(rules[0], "requires"))) != compact(sortedRequirement(requirementOf(names))) {
		return
	}
	config["rules"] = "a token is valid, or each is valid or missing"
	list := make([]any, 0, len(providers))
	for _, n := range names {
		p := object(providers, n)
		if keys := object(p, "localJwks"); strings.Contains(text(keys, "inlineString"), unknownKey) || text(keys, "inlineString") == jwtauthn.NobodysKeys {
			keys["inlineString"] = "nobody's"
		}
		list = append(list, p)
	}
	slices.SortFunc(list, func(a, b any) int { return strings.Compare(compact(a), compact(b)) })
	config["providers"] = list
}

// requirementOf returns the expected requirement of providers.
func requirementOf(names []string) tree {
	var valid, each []any
	for _, n := range names {
		valid = append(valid, tree{"providerName": n})
		each = append(each, tree{"requiresAny": tree{"requirements": []any{tree{"providerName": n}, tree{"allowMissing": tree{}}}}})
	}
	if len(each) == 1 {
		return each[0].(tree)
	}
	return tree{"requiresAny": tree{"requirements": append(valid, tree{"requiresAll": tree{"requirements": each}})}}
}

// sortedRequirement returns a requirement whose lists are sorted.
func sortedRequirement(r tree) tree {
	for _, op := range []string{"requiresAny", "requiresAll"} {
		list := objects(object(r, op), "requirements")
		for _, one := range list {
			sortedRequirement(one)
		}
		if list != nil {
			slices.SortFunc(list, func(a, b tree) int { return strings.Compare(compact(a), compact(b)) })
			setObjects(object(r, op), "requirements", list)
		}
	}
	return r
}

// withoutProviders removes the providers of an object, one for each of its rules.
func withoutProviders(config tree, of *security.RequestAuthentication) {
	for _, r := range of.GetJwtRules() {
		data, err := protojson.Marshal(jwtauthn.Provider(jwtauthn.Rule{Spec: r, Keys: cmp.Or(r.GetJwks(), "nobody's")}))
		if err != nil {
			continue
		}
		var provider tree
		if json.Unmarshal(data, &provider) != nil {
			continue
		}
		removed := false
		keepObjects(config, "providers", func(p tree) bool {
			if removed || compact(p) != compact(provider) {
				return true
			}
			removed = true
			return false
		})
	}
}

// s79 leaves out the virtual hosts with a claim of an empty name: we refuse the VirtualService.
func (c *comparison) s79() {
	broken := make(map[string]bool)
	for _, config := range c.want[routes] {
		for _, vh := range objects(config, "virtualHosts") {
			each(vh, func(o tree) {
				if text(o, "filter") != jwtauthn.Filter {
					return
				}
				for _, segment := range objects(o, "path") {
					for _, d := range texts(vh, "domains") {
						if text(segment, "key") == "" {
							broken[text(config, "name")+" "+d] = true
						}
					}
				}
			})
		}
	}
	c.both(routes, func(config tree) {
		keepObjects(config, "virtualHosts", func(vh tree) bool {
			return !slices.ContainsFunc(texts(vh, "domains"), func(d string) bool { return broken[text(config, "name")+" "+d] })
		})
	})
}

// refusedClaims returns how we refuse a VirtualService that Istio takes, "" if we do not: claims of empty names (S79).
func refusedClaims(ours result) string {
	spec, _ := ours.spec.(*networking.VirtualService)
	for _, r := range spec.GetHttp() {
		for _, m := range r.GetMatch() {
			for _, headers := range []map[string]*networking.StringMatch{m.GetHeaders(), m.GetWithoutHeaders()} {
				for h := range headers {
					if claim, ok := strings.CutPrefix(h, "@request.auth.claims."); ok && !strings.Contains(claim, "[") && strings.Contains("."+claim+".", "..") {
						return outcomeInvalid
					}
				}
			}
		}
	}
	return ""
}
