// SPDX-License-Identifier: Apache-2.0

package route

import (
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"net/textproto"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	jwt "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/jwt_authn/v3"

	"github.com/pilotkit/pilotkit/internal/jwtauthn"
)

// tokens is the filter of RequestAuthentications.
type tokens struct {
	config *jwt.JwtAuthentication
	// places are the places where some provider looks for tokens.
	places tokenPlaces
	// written are the headers that the filter writes. Their values from clients are removed, because
	// backends trust them.
	written []string
}

func newTokens(config *jwt.JwtAuthentication) filter {
	t := &tokens{config: config}
	for _, p := range config.GetProviders() {
		t.places.add(p)
		if name := p.GetForwardPayloadHeader(); name != "" {
			t.written = append(t.written, textproto.CanonicalMIMEHeaderKey(name))
		}
		for _, h := range p.GetClaimToHeaders() {
			t.written = append(t.written, textproto.CanonicalMIMEHeaderKey(h.GetHeaderName()))
		}
	}
	slices.Sort(t.written)
	t.written = slices.Compact(t.written)
	return t.pass
}

// pass evaluates the filter. A token that is there and that the caller has not verified is refused,
// because it must not count as none.
func (t *tokens) pass(c *call, a *Access) bool {
	for _, name := range t.written {
		c.change(HeaderChange{Operation: Remove, Name: name})
	}
	origin, _ := c.header("Origin")
	method, _ := c.header("Access-Control-Request-Method")
	switch {
	case t.config.GetBypassCorsPreflight() && c.Method == http.MethodOptions && origin != "" && method != "":
		return true
	case c.InvalidToken:
		a.refuse(nil, http.StatusUnauthorized, "the token is not valid, and there are RequestAuthentications")
		return false
	case c.Claims == nil && t.places.hold(c):
		a.refuse(nil, http.StatusUnauthorized, "the request has a token that the caller has not verified, and there are RequestAuthentications")
		return false
	case c.Claims == nil:
		return true
	}
	taken, known, why := jwtauthn.Verify(t.config, c.Claims, time.Now())
	if why != nil {
		a.refuse(why.Provider, why.Status, why.Reason)
		return false
	}
	c.note(jwtauthn.Filter, jwtauthn.Payload, known)
	subject, _ := c.Claims["sub"].(string)
	a.Token, a.Claims = taken.GetIssuer()+"/"+subject, known
	forwardToken(c, taken)
	return true
}

func (a *Access) refuse(provider *jwt.JwtProvider, status int, why string) {
	a.Allowed, a.Cause, a.Provider, a.status, a.Text = false, BadToken, provider, status, why
	a.By, a.Policy = Origin{}, ""
}

// forwardToken changes the request as a provider says that accepts the token: the token goes from
// headers and parameters unless it is forwarded, and claims come.
func forwardToken(c *call, p *jwt.JwtProvider) {
	if !p.GetForward() {
		var places tokenPlaces
		places.add(p)
		for _, h := range places.headers {
			if h.in(c) {
				c.change(HeaderChange{Operation: Remove, Name: h.name})
			}
		}
		c.removeParameters(places.params)
	}
	if name := p.GetForwardPayloadHeader(); name != "" {
		c.change(HeaderChange{Set, textproto.CanonicalMIMEHeaderKey(name), encodedClaim(c.Claims)})
	}
	for _, h := range p.GetClaimToHeaders() {
		if value, ok := claimText(c.Claims, h.GetClaimName()); ok {
			c.change(HeaderChange{Set, textproto.CanonicalMIMEHeaderKey(h.GetHeaderName()), value})
		}
	}
}

// removeParameters removes parameters of the query, if there are any. As an Envoy does, it sorts the
// others by their names then.
func (c *call) removeParameters(names []string) {
	path, query, _ := strings.Cut(c.Path, "?")
	pairs := strings.Split(query, "&")
	name := func(pair string) string {
		key, _, _ := strings.Cut(pair, "=")
		return key
	}
	left := slices.DeleteFunc(slices.Clone(pairs), func(pair string) bool { return slices.Contains(names, name(pair)) })
	if len(left) == len(pairs) {
		return
	}
	slices.SortStableFunc(left, func(a, b string) int { return strings.Compare(name(a), name(b)) })
	for i, pair := range left {
		if !strings.Contains(pair, "=") {
			left[i] += "="
		}
	}
	if len(left) > 0 {
		path += "?" + strings.Join(left, "&")
	}
	c.setPath(path)
}

// claimText returns a claim, which may be nested ("a.b"), as the text of a header: lists and objects
// are base64url of their JSON.
func claimText(claims map[string]any, name string) (text string, ok bool) {
	value, ok := claims[name]
	for rest := name; !ok; {
		var first string
		if first, rest, ok = strings.Cut(rest, "."); !ok {
			return "", false
		}
		if claims, ok = claims[first].(map[string]any); !ok {
			return "", false
		}
		value, ok = claims[rest]
	}
	switch v := value.(type) {
	case string:
		return v, true
	case bool:
		return strconv.FormatBool(v), true
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64), true
	case nil:
		return "", false
	default:
		return encodedClaim(v), true
	}
}

func encodedClaim(v any) string {
	text, _ := json.Marshal(v) // claims come from JSON
	return base64.RawURLEncoding.EncodeToString(text)
}

// tokenPlaces are places of tokens in a request.
type tokenPlaces struct {
	headers         []tokenHeader
	params, cookies []string
}

// tokenHeader is a header, by its canonical name, with a token behind a prefix.
type tokenHeader struct{ name, prefix string }

// add adds the places of a provider. Without any, these are Envoy's defaults.
func (t *tokenPlaces) add(p *jwt.JwtProvider) {
	if len(p.GetFromHeaders())+len(p.GetFromParams())+len(p.GetFromCookies()) == 0 {
		t.headers, t.params = append(t.headers, tokenHeader{"Authorization", "Bearer "}), append(t.params, "access_token")
		return
	}
	for _, h := range p.GetFromHeaders() {
		t.headers = append(t.headers, tokenHeader{textproto.CanonicalMIMEHeaderKey(h.GetName()), h.GetValuePrefix()})
	}
	t.params, t.cookies = append(t.params, p.GetFromParams()...), append(t.cookies, p.GetFromCookies()...)
}

// hold reports whether a request has anything in one of the places.
func (t *tokenPlaces) hold(c *call) bool {
	if slices.ContainsFunc(t.headers, func(h tokenHeader) bool { return h.in(c) }) {
		return true
	}
	_, query, _ := strings.Cut(c.Path, "?")
	for pair := range strings.SplitSeq(query, "&") {
		key, _, _ := strings.Cut(pair, "=")
		decoded, err := url.QueryUnescape(key)
		if slices.Contains(t.params, key) || err == nil && slices.Contains(t.params, decoded) {
			return true
		}
	}
	for _, header := range c.Headers["Cookie"] {
		for cookie := range strings.SplitSeq(header, ";") {
			if name, _, ok := strings.Cut(strings.TrimSpace(cookie), "="); ok && slices.Contains(t.cookies, name) {
				return true
			}
		}
	}
	return false
}

func (h tokenHeader) in(c *call) bool {
	value, ok := c.header(h.name)
	return ok && strings.Contains(value, h.prefix)
}

// change changes a header of the request, for later filters, routes and the destination.
func (c *call) change(by HeaderChange) {
	if _, there := c.Headers[by.Name]; there || by.Operation != Remove {
		if c.Headers = maps.Clone(c.Headers); c.Headers == nil {
			c.Headers = make(http.Header)
		}
		Apply([]HeaderChange{by}, c.Headers)
	}
	c.changes = append(c.changes, by)
}
