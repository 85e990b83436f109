// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"fmt"
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

// claim matches a claim of a valid token.
func (form Form) claim(value *matcher.ValueMatcher, path ...string) *rbacv3.Principal {
	m := metadata(jwtFilter, append([]string{claimsPath}, path...), value)
	if form.grpc() {
		return grpcClaim(m)
	}
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
