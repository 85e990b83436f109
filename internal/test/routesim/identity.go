// SPDX-License-Identifier: Apache-2.0

package routesim

import (
	"slices"
	"strings"
)

const scheme = "spiffe://"

// anyName reports whether a name in the certificate of the other side is as asked for.
func (r ruleReader) anyName(is func(name string) bool) bool {
	return slices.ContainsFunc(r.call.Certificate.names(), is)
}

// principal compares identities "TRUST-DOMAIN/ns/NAMESPACE/sa/ACCOUNT", with the domains of the mesh for
// each other.
func (r ruleReader) principal(value string) bool {
	return slices.ContainsFunc(r.of.principals(strings.TrimPrefix(value, scheme)), func(v string) bool { // S54
		return r.anyName(func(name string) bool {
			if v == "*" {
				return name != ""
			}
			id, ok := strings.CutPrefix(name, scheme)
			return ok && wildcard(v, id)
		})
	})
}

// principals returns all spellings of a principal, by the trust domain and its aliases (S53).
func (a *Authorization) principals(value string) []string {
	own := append([]string{a.TrustDomain}, a.Aliases...)
	domain, rest, _ := strings.Cut(value, "/")
	if len(strings.Split(value, "/")) != 5 || domain == "*" {
		return []string{value}
	}
	covered := func(d string) bool { return strings.HasPrefix(domain, "*") && wildcard(domain, d) }
	if domain != "cluster.local" && !slices.Contains(own, domain) && !slices.ContainsFunc(own, covered) {
		return []string{value}
	}
	var out []string
	for _, d := range own {
		if covered(d) {
			out = append(out, value)
		} else {
			out = append(out, d+"/"+rest)
		}
	}
	return out
}

// trustDomain compares the first part of identities; a star in it is any text without a slash.
func (r ruleReader) trustDomain(value string) bool {
	values := []string{value}
	if own := append([]string{r.of.TrustDomain}, r.of.Aliases...); slices.Contains(own, value) {
		values = own
	}
	return r.anyName(func(name string) bool {
		id, ok := strings.CutPrefix(name, scheme)
		domain, _, more := strings.Cut(id, "/")
		return ok && slices.ContainsFunc(values, func(v string) bool { return v == "*" || more && glob(v, domain) })
	})
}

// glob reports whether text matches a pattern with stars, each for any text.
func glob(pattern, text string) bool {
	before, after, ok := strings.Cut(pattern, "*")
	rest, starts := strings.CutPrefix(text, before)
	if !starts || !ok {
		return starts && rest == ""
	}
	for i := range len(rest) + 1 {
		if glob(after, rest[i:]) {
			return true
		}
	}
	return false
}

// namespace finds "/ns/NAMESPACE/" anywhere in an identity (S51).
func (r ruleReader) namespace(value string) bool {
	return r.anyName(func(name string) bool { return glob("*/ns/"+value+"/*", name) })
}

// serviceAccount finds "/ns/NAMESPACE/" and behind it "sa/ACCOUNT" as whole parts; an account alone is of
// the policy's namespace.
func (r ruleReader) serviceAccount(value string) bool {
	ns, account, ok := strings.Cut(value, "/")
	if !ok {
		ns, account = r.policy.Namespace, value
	}
	return r.anyName(func(name string) bool {
		id, ok := strings.CutPrefix(name, scheme)
		parts := strings.Split(id, "/")
		for i := 1; ok && i+1 < len(parts); i++ {
			if parts[i] != "ns" || parts[i+1] != ns {
				continue
			}
			for j := i + 2; j+1 < len(parts); j++ {
				if parts[j] == "sa" && parts[j+1] == account {
					return true
				}
			}
		}
		return false
	})
}

// requestPrincipal compares the identity of a token, the text "ISSUER/SUBJECT". A star inside a
// value is the end of the issuer or the beginning of the subject, at any of the slashes (S52).
func (r ruleReader) requestPrincipal(value string) bool {
	issuer, known := r.call.Claims["iss"].(string)
	subject, named := r.call.Claims["sub"].(string)
	if !known || !named {
		return false
	}
	identity := issuer + "/" + subject
	switch {
	case value == "*", value == "*/*":
		return issuer != "" && subject != ""
	case value == identity, value == issuer && subject == "":
		return true
	case strings.HasPrefix(value, "*") && issuer != "" && wildcard(value, identity):
		return true
	case strings.HasSuffix(value, "*") && subject != "" && wildcard(value, identity):
		return true
	}
	for i := range len(value) {
		if value[i] == '/' && wildcard(value[:i], issuer) && wildcard(value[i+1:], subject) {
			return true
		}
	}
	return false
}

// claim compares a claim below objects of a token: a text, or an element of a list.
func (r ruleReader) claim(path ...string) func(string) bool {
	return func(value string) bool {
		var at any = r.call.Claims
		for _, key := range path {
			object, _ := at.(map[string]any)
			at = object[key]
		}
		if list, ok := at.([]any); ok {
			return slices.ContainsFunc(list, func(v any) bool { return isText(value, v) })
		}
		return isText(value, at)
	}
}
