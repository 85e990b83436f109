// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"fmt"
	"slices"
	"strings"

	rbacv3 "github.com/envoyproxy/go-control-plane/envoy/config/rbac/v3"
	matcher "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	security "istio.io/api/security/v1beta1"
)

// spiffe is the scheme of the identities in certificates.
const spiffe = "spiffe://"

// jwtFilter is the filter that stores the claims of tokens below claimsPath.
const (
	jwtFilter  = "envoy.filters.http.jwt_authn"
	claimsPath = "payload"
)

// source adds the fields of the source of a rule.
func (t *translation) source(d *demands[*rbacv3.Principal], s *security.Source) {
	type how = matching[*rbacv3.Principal]
	d.field("principals", s.GetPrincipals(), s.GetNotPrincipals(), how{match: t.identity(t.principals)})
	d.field("namespaces", s.GetNamespaces(), s.GetNotNamespaces(), how{match: t.identity(each(namespace))})
	d.field("serviceAccounts", s.GetServiceAccounts(), s.GetNotServiceAccounts(), how{match: t.identity(each(t.serviceAccount))})
	d.field("trustDomains", s.GetTrustDomains(), s.GetNotTrustDomains(), how{match: t.identity(t.trustDomains)})
	d.field("ipBlocks", s.GetIpBlocks(), s.GetNotIpBlocks(), how{match: each(t.form.directAddress)})
	d.field("remoteIpBlocks", s.GetRemoteIpBlocks(), s.GetNotRemoteIpBlocks(), how{match: each(t.form.remoteAddress)})
	d.field("requestPrincipals", s.GetRequestPrincipals(), s.GetNotRequestPrincipals(), how{match: each(t.form.requestPrincipal), http: true})
}

// each matches each value separately.
func each[M any](match func(string) (M, error)) func([]string) ([]M, error) {
	return func(values []string) ([]M, error) {
		out := make([]M, 0, len(values))
		for _, v := range values {
			m, err := match(v)
			if err != nil {
				return nil, err
			}
			out = append(out, m)
		}
		return out, nil
	}
}

// identity returns match for identities in certificates, or a match of nothing if certificates are
// not verified.
func (t *translation) identity(match func([]string) ([]*rbacv3.Principal, error)) func([]string) ([]*rbacv3.Principal, error) {
	if !t.unverified {
		return match
	}
	return func(values []string) ([]*rbacv3.Principal, error) {
		_, err := match(values)
		return []*rbacv3.Principal{principals().not(principals().everything())}, err
	}
}

func authenticated(name *matcher.StringMatcher) *rbacv3.Principal {
	return &rbacv3.Principal{Identifier: &rbacv3.Principal_Authenticated_{Authenticated: &rbacv3.Principal_Authenticated{PrincipalName: name}}}
}

// principals matches identities without the scheme; the scheme is also accepted (S54).
func (t *translation) principals(values []string) ([]*rbacv3.Principal, error) {
	plain := make([]string, 0, len(values))
	for _, v := range values {
		plain = append(plain, strings.TrimPrefix(v, spiffe))
	}
	return each(principal)(t.trust.principals(plain))
}

func principal(value string) (*rbacv3.Principal, error) {
	end, open := strings.CutPrefix(value, "*")
	switch {
	case value == anything:
		return authenticated(regex(".+")), nil
	case open:
		return authenticated(regex(spiffe + ".*" + pattern(end, `\*`))), nil
	default:
		return authenticated(text(spiffe + value)), nil
	}
}

// namespace matches the identities of a namespace in any trust domain (S51).
func namespace(value string) (*rbacv3.Principal, error) {
	return authenticated(regex(".*/ns/" + pattern(value, ".*") + "/.*")), nil
}

// serviceAccount matches "NAMESPACE/ACCOUNT", or an account in the policy's namespace.
func (t *translation) serviceAccount(value string) (*rbacv3.Principal, error) {
	ns, account, ok := strings.Cut(value, "/")
	if !ok {
		ns, account = t.namespace, value
	}
	if ns == "" || account == "" || strings.Contains(account, "/") {
		return nil, fmt.Errorf("%q is neither an account nor namespace/account", value)
	}
	return authenticated(regex(spiffe + ".+/ns/" + pattern(ns, `\*`) + "/(.+/|)sa/" + pattern(account, `\*`) + "(/.+)?")), nil
}

func (t *translation) trustDomains(values []string) ([]*rbacv3.Principal, error) {
	return each(trustDomain)(t.trust.trustDomains(values))
}

func trustDomain(value string) (*rbacv3.Principal, error) {
	switch {
	case value == anything:
		return authenticated(prefix(spiffe)), nil
	case strings.Contains(value, "*"):
		return authenticated(regex(spiffe + pattern(value, "[^/]*") + "/.*")), nil
	default:
		return authenticated(prefix(spiffe + value + "/")), nil
	}
}

func (form Form) directAddress(value string) (*rbacv3.Principal, error) {
	r, err := form.addresses(value)
	return &rbacv3.Principal{Identifier: &rbacv3.Principal_DirectRemoteIp{DirectRemoteIp: r}}, err
}

func (form Form) remoteAddress(value string) (*rbacv3.Principal, error) {
	r, err := form.addresses(value)
	return &rbacv3.Principal{Identifier: &rbacv3.Principal_RemoteIp{RemoteIp: r}}, err
}

// requestPrincipal matches the identity of a token, which is the text "ISSUER/SUBJECT". Envoy has
// two separate values, and both may contain slashes, so the value is split in every possible way
// (S52).
func (form Form) requestPrincipal(value string) (*rbacv3.Principal, error) {
	some, side := regex(".+"), principals()
	identity := func(issuer, subject *matcher.StringMatcher) *rbacv3.Principal {
		return side.and([]*rbacv3.Principal{form.claim(textValue(issuer), "iss"), form.claim(textValue(subject), "sub")})
	}
	if value == anything || value == "*/*" {
		return identity(some, some), nil
	}
	var ways []*rbacv3.Principal
	for i := range len(value) {
		if value[i] == '/' {
			ways = append(ways, identity(text(value[:i]), text(value[i+1:])))
		}
	}
	switch {
	case strings.HasPrefix(value, "*"): // the end of a subject
		ways = append(ways, identity(some, text(value)))
	case strings.HasSuffix(value, "*"): // the beginning of an issuer
		ways = append(ways, identity(text(value), some))
	case len(ways) == 0:
		ways = append(ways, identity(exact(value), exact("")))
	}
	return side.anyOf(ways), nil
}

// claim matches a claim of a valid token. Servers have no tokens (S9).
func (form Form) claim(value *matcher.ValueMatcher, path ...string) *rbacv3.Principal {
	if form.grpc() {
		return principals().nothing()
	}
	m := metadata(jwtFilter, append([]string{claimsPath}, path...), value)
	return &rbacv3.Principal{Identifier: &rbacv3.Principal_SourcedMetadata{SourcedMetadata: ofRequest(m)}}
}

// claims matches a claim that is one of some texts, or a list that contains one of them.
func (form Form) claims(path ...string) func(values []string) ([]*rbacv3.Principal, error) {
	return func(values []string) ([]*rbacv3.Principal, error) {
		texts := make([]*matcher.ValueMatcher, 0, len(values))
		for _, v := range values {
			texts = append(texts, textValue(text(v)))
		}
		value := anyValue(texts...)
		return []*rbacv3.Principal{form.claim(anyValue(listed(value), value), path...)}, nil
	}
}

// condition adds a condition of a rule to its side.
func (t *translation) condition(source *demands[*rbacv3.Principal], operation *demands[*rbacv3.Permission], c *security.Condition) {
	of, to := t.principalOf(c.GetKey()), t.form.permissionOf(c.GetKey())
	switch {
	case of.match != nil:
		source.field("values", c.GetValues(), c.GetNotValues(), of)
	case to.match != nil:
		operation.field("values", c.GetValues(), c.GetNotValues(), to)
	default:
		source.problem("key", fmt.Errorf("there is no attribute %q", c.GetKey()))
	}
}

// permissionOf returns the matching of an attribute of the operation.
func (form Form) permissionOf(key string) (f matching[*rbacv3.Permission]) {
	switch key {
	case "destination.port":
		f.match = each(form.port)
	case "destination.ip":
		f.match = each(form.destination)
	case "connection.sni":
		f.match = each(form.serverName)
	default:
		if filter, ok := strings.CutPrefix(key, "experimental."); ok {
			if filter, path, ok := indexed(filter); ok {
				f.match = form.filterMetadata(filter, path)
			}
		}
	}
	return f
}

// principalOf returns the matching of an attribute of the source.
func (t *translation) principalOf(key string) (f matching[*rbacv3.Principal]) {
	switch key {
	case "source.principal":
		f.match = t.identity(t.principals)
	case "source.namespace":
		f.match = t.identity(each(namespace))
	case "source.serviceAccount":
		f.match = t.identity(each(t.serviceAccount))
	case "source.trustDomain":
		f.match = t.identity(t.trustDomains)
	case "source.ip":
		f.match = each(t.form.directAddress)
	case "remote.ip":
		f.match = each(t.form.remoteAddress)
	case "request.auth.principal":
		f.match, f.http = each(t.form.requestPrincipal), true
	case "request.auth.audiences":
		f.match, f.http = t.form.claims("aud"), true
	case "request.auth.presenter":
		f.match, f.http = t.form.claims("azp"), true
	default:
		switch attribute, index, ok := indexed(key); {
		case ok && attribute == "request.headers":
			f.match, f.http = each(t.form.headerOf(index)), true
		case ok && attribute == "request.auth.claims":
			if names := strings.Split(index, "]["); !slices.Contains(names, "") {
				f.match, f.http = t.form.claims(names...), true
			}
		}
	}
	return f
}

// indexed splits a key "ATTRIBUTE[INDEX]".
func indexed(key string) (attribute, index string, ok bool) {
	attribute, index, ok = strings.Cut(key, "[")
	index, closed := strings.CutSuffix(index, "]")
	return attribute, index, ok && closed && index != ""
}

// headerOf matches a request header. The case of its name is ignored (S19).
func (form Form) headerOf(name string) func(value string) (*rbacv3.Principal, error) {
	return func(value string) (*rbacv3.Principal, error) {
		if form.grpc() {
			known, err := grpcHeaderName(name)
			if err != nil {
				return nil, err
			}
			name = known
		}
		return &rbacv3.Principal{Identifier: &rbacv3.Principal_Header{Header: form.header(name, value, false)}}, nil
	}
}

// filterMetadata matches the dynamic metadata of a filter, which servers do not have. A value
// "[TEXT]" is an element of a list.
func (form Form) filterMetadata(filter, path string) func(values []string) ([]*rbacv3.Permission, error) {
	return func(values []string) ([]*rbacv3.Permission, error) {
		if form.grpc() {
			return []*rbacv3.Permission{permissions().nothing()}, nil
		}
		texts := make([]*matcher.ValueMatcher, 0, len(values))
		for _, v := range values {
			if element, ok := strings.CutPrefix(v, "["); ok && strings.HasSuffix(element, "]") {
				texts = append(texts, listed(textValue(text(strings.TrimSuffix(element, "]")))))
			} else {
				texts = append(texts, textValue(text(v)))
			}
		}
		m := metadata(filter, []string{path}, anyValue(texts...))
		return []*rbacv3.Permission{{Rule: &rbacv3.Permission_SourcedMetadata{SourcedMetadata: ofRequest(m)}}}, nil
	}
}

// defaultDomain stands for the mesh's own trust domain, regardless of its name.
const defaultDomain = "cluster.local"

// Trust contains the trust domain of a mesh and its aliases.
type Trust struct {
	Domain  string
	Aliases []string
}

// domains returns all of them, the mesh's own first.
func (t Trust) domains() []string { return append([]string{t.Domain}, t.Aliases...) }

// principals returns identities "DOMAIN/ns/NAMESPACE/sa/ACCOUNT". It expands an identity of one of
// the mesh's domains to all of them. Other forms stay unchanged (S53).
func (t Trust) principals(values []string) []string {
	var out []string
	add := func(p string) {
		if !slices.Contains(out, p) {
			out = append(out, p)
		}
	}
	for _, p := range values {
		domain, path, _ := strings.Cut(p, "/")
		if strings.Count(p, "/") != 4 || domain == "*" || !t.has(domain) {
			add(p)
			continue
		}
		for _, d := range t.domains() {
			if isSuffix(domain, d) {
				add(p)
			} else {
				add(d + "/" + path)
			}
		}
	}
	return out
}

// has reports whether the domain of a principal is one of the mesh's. As in Istio 1.30, it may also be the
// beginning or the end of one.
func (t Trust) has(domain string) bool {
	start, open := strings.CutSuffix(domain, "*")
	return domain == defaultDomain || slices.ContainsFunc(t.domains(), func(d string) bool {
		return d == domain || open && strings.HasPrefix(d, start) || isSuffix(domain, d)
	})
}

// isSuffix reports whether a pattern "*SUFFIX" matches.
func isSuffix(pattern, s string) bool {
	suffix, ok := strings.CutPrefix(pattern, "*")
	return ok && strings.HasSuffix(s, suffix)
}

// trustDomains expands each trust domain of the mesh to all of the mesh's domains.
func (t Trust) trustDomains(values []string) []string {
	var out []string
	for _, v := range values {
		with := []string{v}
		if slices.Contains(t.domains(), v) {
			with = t.domains()
		}
		for _, d := range with {
			if !slices.Contains(out, d) {
				out = append(out, d)
			}
		}
	}
	return out
}
