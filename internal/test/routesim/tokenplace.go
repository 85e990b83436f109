// SPDX-License-Identifier: Apache-2.0

package routesim

import (
	"maps"
	"net/url"
	"slices"
	"strings"

	jwt "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/jwt_authn/v3"
)

// placedToken is a token, or what stands at its place.
type placedToken struct {
	text string
	// header or param is where it is; both are "" for a cookie.
	header, param string
	// issuers are the issuers of the providers that read this place; "" is any.
	issuers []string
}

// tokenPlaces are where providers look for tokens, and their issuers.
type tokenPlaces struct {
	headers map[[2]string][]string // by name and prefix
	params  map[string][]string
	cookies map[string][]string
}

func (x *tokenPlaces) add(p *jwt.JwtProvider) {
	issuer := p.GetIssuer()
	headers, params := p.GetFromHeaders(), p.GetFromParams()
	if len(headers) == 0 && len(params) == 0 && len(p.GetFromCookies()) == 0 {
		headers = []*jwt.JwtHeader{{Name: "Authorization", ValuePrefix: "Bearer "}}
		params = []string{"access_token"}
	}
	for _, h := range headers {
		at := [2]string{strings.ToLower(h.GetName()), h.GetValuePrefix()}
		x.headers[at] = append(x.headers[at], issuer)
	}
	for _, name := range params {
		x.params[name] = append(x.params[name], issuer)
	}
	for _, name := range p.GetFromCookies() {
		x.cookies[name] = append(x.cookies[name], issuer)
	}
}

// at returns the tokens at the places of some providers: those in headers, in parameters, in cookies.
func (r *tokenReader) at(names ...string) (out []*placedToken) {
	x := tokenPlaces{map[[2]string][]string{}, map[string][]string{}, map[string][]string{}}
	for _, name := range names {
		x.add(r.providers[name])
	}
	byText := func(a, b [2]string) int { return strings.Compare(a[0]+a[1], b[0]+b[1]) }
	for _, at := range slices.SortedFunc(maps.Keys(x.headers), byText) {
		value, ok := r.call.header(at[0])
		_, rest, found := strings.Cut(value, at[1])
		if !ok || !found {
			continue
		}
		if at[1] != "" {
			rest = firstToken(rest)
		}
		out = append(out, &placedToken{text: rest, header: at[0], issuers: x.headers[at]})
	}
	_, query, _ := strings.Cut(r.call.Path, "?")
	values, _ := url.ParseQuery(query)
	for _, name := range slices.Sorted(maps.Keys(x.params)) {
		if values.Has(name) {
			out = append(out, &placedToken{text: values.Get(name), param: name, issuers: x.params[name]})
		}
	}
	header, _ := r.call.header("cookie")
	for _, name := range slices.Sorted(maps.Keys(x.cookies)) {
		for cookie := range strings.SplitSeq(header, ";") {
			if key, value, ok := strings.Cut(strings.TrimSpace(cookie), "="); ok && key == name {
				out = append(out, &placedToken{text: value, issuers: x.cookies[name]})
				break
			}
		}
	}
	return out
}

// firstToken returns the first part of a text that has only characters of tokens.
func firstToken(text string) string {
	ofToken := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' || r == '.'
	}
	start := strings.IndexFunc(text, ofToken)
	if start < 0 {
		return text
	}
	other := func(r rune) bool { return !ofToken(r) }
	if end := strings.IndexFunc(text[start:], other); end >= 0 {
		return text[start : start+end]
	}
	return text[start:]
}
