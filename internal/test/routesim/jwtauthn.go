// SPDX-License-Identifier: Apache-2.0

package routesim

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	jwt "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/jwt_authn/v3"
)

// tokenFilter is the filter name under which the claims of a token are found.
const tokenFilter = "envoy.filters.http.jwt_authn"

// verifiesTokens reports whether there is a filter that does.
func (g *Gate) verifiesTokens() bool {
	return slices.ContainsFunc(g.filters, func(f gateFilter) bool {
		_, ok := f.config.(*jwt.JwtAuthentication)
		return ok
	})
}

// verdict is the result of a requirement for a request.
type verdict int

const (
	verified verdict = iota
	noToken
	badToken
)

// tokens verifies the tokens of a request as the filter is documented to do.
func (v *visit) tokens(config *jwt.JwtAuthentication) (bool, error) {
	if len(config.GetRequirementMap()) > 0 || config.GetFilterStateRules() != nil {
		return false, errors.New("requirements by name are not known here")
	}
	if config.GetBypassCorsPreflight() && v.call.isPreflight() {
		return true, nil
	}
	rules := config.GetRules()
	if len(rules) != 1 {
		return false, fmt.Errorf("%d rules are not known here", len(rules))
	}
	rule := rules[0]
	if p, ok := rule.GetMatch().GetPathSpecifier().(*routev3.RouteMatch_Prefix); !ok || p.Prefix != "/" {
		return false, fmt.Errorf("the rule %v is not known here", rule.GetMatch())
	}
	for _, p := range config.GetProviders() { // to drop the claims that clients send in headers of their own
		for _, name := range outputsOf(p) {
			delete(v.call.Headers, name)
		}
	}
	reader := tokenReader{visit: v, providers: config.GetProviders(), found: map[string]any{}}
	got, err := reader.requires(rule.GetRequires())
	if err != nil {
		return false, err
	}
	if got == verified && len(reader.found) > 0 {
		v.found[tokenFilter] = reader.found
	}
	return got == verified, nil
}

// isPreflight reports whether a request is one of CORS that asks whether another one may be sent.
func (c Call) isPreflight() bool {
	origin, _ := c.header("origin")
	method, _ := c.header("access-control-request-method")
	return c.Request != nil && c.Method == http.MethodOptions && origin != "" && method != ""
}

// tokenReader verifies the tokens of one request.
type tokenReader struct {
	*visit
	providers map[string]*jwt.JwtProvider
	// found are the claims of tokens that were good, by key of the metadata. The last one counts.
	found map[string]any
}

// requires evaluates a requirement.
func (r *tokenReader) requires(x *jwt.JwtRequirement) (verdict, error) {
	switch one := x.GetRequiresType().(type) {
	case *jwt.JwtRequirement_ProviderName:
		if p := r.providers[one.ProviderName]; p == nil || p.GetLocalJwks().GetInlineString() == "" {
			return badToken, fmt.Errorf("provider %q is not known here", one.ProviderName)
		}
		return r.provider(one.ProviderName), nil
	case *jwt.JwtRequirement_RequiresAny:
		return r.any(one.RequiresAny.GetRequirements())
	case *jwt.JwtRequirement_RequiresAll:
		for _, each := range one.RequiresAll.GetRequirements() {
			if got, err := r.requires(each); err != nil || got != verified {
				return got, err
			}
		}
		return verified, nil
	default:
		return badToken, fmt.Errorf("requirement %T is not known here", one)
	}
}

// any is the first requirement that is met. A requirement of no token is checked last, for the
// token places of the other providers in the list.
func (r *tokenReader) any(list []*jwt.JwtRequirement) (verdict, error) {
	last, mayMiss := badToken, false
	var beside []string
	for _, x := range list {
		if x.GetAllowMissing() != nil {
			mayMiss = true
			continue
		}
		if name := x.GetProviderName(); name != "" {
			beside = append(beside, name)
		}
		got, err := r.requires(x)
		if err != nil || got == verified {
			return got, err
		}
		last = got
	}
	if mayMiss {
		return r.missing(beside), nil
	}
	return last, nil
}

// provider is met if there are tokens at its places, and all of them are good.
func (r *tokenReader) provider(name string) verdict {
	tokens := r.at(name)
	if len(tokens) == 0 {
		return noToken
	}
	for _, t := range slices.Backward(tokens) {
		if !r.good(r.providers[name], t) {
			return badToken
		}
	}
	return verified
}

// missing is met if there is no token at the places of some providers, or the one that is looked at
// last, which is at the first place, is good for the provider of its issuer.
func (r *tokenReader) missing(names []string) verdict {
	got := verified
	for _, t := range slices.Backward(r.at(names...)) {
		got = badToken
		parsed, err := parseToken(t.text)
		if err != nil {
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(r.providers)) {
			if p := r.providers[name]; p.GetIssuer() == parsed.issuer {
				if r.good(p, t) {
					got = verified
				}
				break
			}
		}
	}
	return got
}

// clockSkew is how much clocks may differ, in seconds.
const clockSkew = 60

// good verifies a token for a provider, and records its claims if it is valid.
func (r *tokenReader) good(p *jwt.JwtProvider, at *placedToken) bool {
	t, err := parseToken(at.text)
	if err != nil || !slices.Contains(at.issuers, t.issuer) && !slices.Contains(at.issuers, "") {
		return false
	}
	now := float64(time.Now().Unix())
	if t.expires != nil && now > *t.expires+clockSkew || t.begins != nil && now < *t.begins-clockSkew {
		return false
	}
	if !isForAudience(p.GetAudiences(), t.audiences) {
		return false
	}
	if !r.gate.Signatures.by(p.GetLocalJwks().GetInlineString(), t) {
		return false
	}
	if !p.GetForward() && at.header != "" {
		delete(r.call.Headers, at.header)
	}
	if !p.GetForward() && at.param != "" {
		r.call.Path = withoutParam(r.call.Path, at.param)
	}
	if key := p.GetPayloadInMetadata(); key != "" {
		r.found[key] = separated(t.claims, p.GetNormalizePayloadInMetadata().GetSpaceDelimitedClaims())
	}
	r.output(p, at.text, t.claims)
	return true
}

// withoutParam removes a parameter. The others are sorted, and all have a value.
func withoutParam(path, param string) string {
	path, query, _ := strings.Cut(path, "?")
	values := map[string][]string{}
	for pair := range strings.SplitSeq(query, "&") {
		if name, value, _ := strings.Cut(pair, "="); name != param {
			values[name] = append(values[name], value)
		}
	}
	separator := "?"
	for _, name := range slices.Sorted(maps.Keys(values)) {
		for _, value := range values[name] {
			path += separator + name + "=" + value
			separator = "&"
		}
	}
	return path
}

// outputsOf returns the headers, in lower case, that a provider sets.
func outputsOf(p *jwt.JwtProvider) (out []string) {
	if name := p.GetForwardPayloadHeader(); name != "" {
		out = append(out, strings.ToLower(name))
	}
	for _, c := range p.GetClaimToHeaders() {
		out = append(out, strings.ToLower(c.GetHeaderName()))
	}
	return out
}

// output sets the headers of a provider. Claims that are no texts are encoded in a way that is not
// known here, and set as empty.
func (r *tokenReader) output(p *jwt.JwtProvider, text string, claims map[string]any) {
	if name := p.GetForwardPayloadHeader(); name != "" {
		r.call.Headers[strings.ToLower(name)] = strings.Split(text, ".")[1]
	}
	for _, c := range p.GetClaimToHeaders() {
		if value, ok := claims[c.GetClaimName()]; ok {
			r.call.Headers[strings.ToLower(c.GetHeaderName())], _ = value.(string)
		}
	}
}

// separated returns claims with the named texts split into lists.
func separated(claims map[string]any, names []string) map[string]any {
	out := maps.Clone(claims)
	for _, name := range names {
		if text, ok := out[name].(string); ok {
			list := []any{}
			for word := range strings.FieldsSeq(text) {
				list = append(list, word)
			}
			out[name] = list
		}
	}
	return out
}

// isForAudience reports whether one of the audiences of a token is wanted, ignoring schemes and
// trailing slashes. With no wanted audience all are.
func isForAudience(wanted, audiences []string) bool {
	plain := func(a string) string {
		return strings.TrimSuffix(strings.TrimPrefix(strings.TrimPrefix(a, "https://"), "http://"), "/")
	}
	return len(wanted) == 0 || slices.ContainsFunc(audiences, func(a string) bool {
		return slices.ContainsFunc(wanted, func(w string) bool { return plain(w) == plain(a) })
	})
}
