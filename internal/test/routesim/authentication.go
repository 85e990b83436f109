// SPDX-License-Identifier: Apache-2.0

package routesim

import (
	"maps"
	"net/url"
	"slices"
	"strings"

	security "istio.io/api/security/v1beta1"
)

// Authentication judges the tokens of requests by RequestAuthentications, read as Istio's API
// documents them. Comments cite rows of the list of decisions where the documentation is silent, or
// not followed.
type Authentication struct {
	Policies []*RequestAuthentication
	// Tokens are the known tokens, by their text. Other texts are not tokens.
	Tokens map[string]*Token
	// Signers are the signers in a JSON Web Key Set, by the text of the set.
	Signers map[string][]string
}

// RequestAuthentication is an object with its spec.
type RequestAuthentication struct {
	Namespace, Name string
	*security.RequestAuthentication
}

// Token is a token as who has made it knows it.
type Token struct {
	// Signer is the signer of the token, "" if it is unsigned.
	Signer string
	// Outdated: its time is over, or has not come.
	Outdated bool
	Claims   map[string]any
}

// Identified is the result of authenticating a request.
type Identified struct {
	// MayRefuse and MayAdmit report the allowed results. Both may be true, because the API leaves
	// the result open for requests with several tokens, only some of them valid (S70).
	MayRefuse, MayAdmit bool
	// Claims are the possible claims of the request: the claims of one of its valid tokens, or a
	// single nil if it has none.
	Claims []map[string]any
	// Outputs are the headers that tell the workload of a token, in lower case, and their values:
	// "" is none. Nil: the API leaves it open, as there are several tokens, or rules that take one.
	Outputs map[string]string
}

// Identify judges a request to a proxy: one without tokens, which passes, is nobody's, and one with a token that is not
// valid is refused.
func (a *Authentication) Identify(p Proxy, c Call) Identified {
	nobody := Identified{MayAdmit: true, Claims: []map[string]any{nil}}
	if c.Request == nil || c.isPreflight() { // S76
		return nobody
	}
	found := map[string]bool{} // by place and text
	out := Identified{Outputs: map[string]string{}}
	var said map[string]string
	for _, o := range a.Policies {
		if o.Namespace != p.Namespace && o.Namespace != RootNamespace || !isFor(o, o.Namespace, p) {
			continue
		}
		for _, rule := range o.GetJwtRules() {
			for name := range outputsFor(rule, nil, "") {
				out.Outputs[name] = ""
			}
			for at, text := range tokensOf(rule, c) {
				found[at+text] = true
				if t := a.Tokens[text]; t != nil && a.takes(rule, t) {
					out.Claims = append(out.Claims, listed(t.Claims, rule.GetSpaceDelimitedClaims()))
					said = outputsFor(rule, t.Claims, text)
				}
			}
		}
	}
	if len(found) == 0 {
		nobody.Outputs = out.Outputs
		return nobody
	}
	if maps.Copy(out.Outputs, said); len(found) > 1 || len(out.Claims) > 1 {
		out.Outputs = nil
	}
	out.MayAdmit = len(out.Claims) > 0
	out.MayRefuse = len(out.Claims) == 0 || len(found) > 1
	return out
}

// outputsFor returns the headers that a rule has set for a token: its payload as it is encoded, and
// claims that are texts. Others are encoded as the API does not say; they are "" here.
func outputsFor(rule *security.JWTRule, claims map[string]any, token string) map[string]string {
	out := map[string]string{}
	if name := rule.GetOutputPayloadToHeader(); name != "" {
		_, payload, _ := strings.Cut(token, ".")
		out[strings.ToLower(name)], _, _ = strings.Cut(payload, ".")
	}
	for _, c := range rule.GetOutputClaimToHeaders() {
		out[strings.ToLower(c.GetHeader())], _ = claims[c.GetClaim()].(string)
	}
	return out
}

// RulesIn returns the rules of the objects of a namespace.
func (a *Authentication) RulesIn(namespace string) (out []*security.JWTRule) {
	for _, o := range a.Policies {
		if o.Namespace == namespace {
			out = append(out, o.GetJwtRules()...)
		}
	}
	return out
}

// takes reports whether a token is valid for a rule.
func (a *Authentication) takes(rule *security.JWTRule, t *Token) bool {
	if t.Outdated || t.Claims["iss"] != rule.GetIssuer() || !slices.Contains(a.Signers[rule.GetJwks()], t.Signer) {
		return false
	}
	return len(rule.GetAudiences()) == 0 || slices.ContainsFunc(rule.GetAudiences(), func(wanted string) bool {
		list, _ := t.Claims["aud"].([]any)
		return t.Claims["aud"] == wanted || slices.Contains(list, any(wanted))
	})
}

// tokensOf returns the texts at the token places of a rule, by place: the places that the rule
// lists, or else the header Authorization, after "Bearer ", and the parameter access_token. Other
// schemes of the header are not tokens (S96).
func tokensOf(rule *security.JWTRule, c Call) map[string]string {
	out := map[string]string{}
	headers, params := rule.GetFromHeaders(), rule.GetFromParams()
	if len(headers)+len(params)+len(rule.GetFromCookies()) == 0 {
		headers, params = []*security.JWTHeader{{Name: "authorization", Prefix: "Bearer "}}, []string{"access_token"}
	}
	for _, h := range headers {
		value, ok := c.header(h.GetName())
		if text, begins := strings.CutPrefix(value, h.GetPrefix()); ok && begins {
			out["header "+strings.ToLower(h.GetName())+h.GetPrefix()] = text
		}
	}
	_, query, _ := strings.Cut(c.Path, "?")
	values, _ := url.ParseQuery(query)
	for _, name := range params {
		if values.Has(name) {
			out["param "+name] = values.Get(name)
		}
	}
	cookies, _ := c.header("cookie")
	for _, name := range rule.GetFromCookies() {
		if _, text, ok := strings.Cut("; "+cookies, "; "+name+"="); ok {
			out["cookie "+name], _, _ = strings.Cut(text, ";")
		}
	}
	return out
}

// listed returns claims with some texts split at spaces into lists: scope and permission, and other
// claims of a rule (S75).
func listed(claims map[string]any, more []string) map[string]any {
	out := maps.Clone(claims)
	for _, name := range append([]string{"scope", "permission"}, more...) {
		if text, ok := out[name].(string); ok {
			var list []any
			for word := range strings.FieldsSeq(text) {
				list = append(list, word)
			}
			out[name] = list
		}
	}
	return out
}
