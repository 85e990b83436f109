// SPDX-License-Identifier: Apache-2.0

package routecheck

import (
	"encoding/json"
	"math/rand/v2"
	"strings"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	jwt "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/jwt_authn/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/pilotkit/pilotkit/internal/test/routesim"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/route"
)

// WithKeys returns a listener whose filters verify tokens with a set of keys.
func WithKeys(l *listenerv3.Listener, set string) (*listenerv3.Listener, error) {
	l = proto.CloneOf(l)
	for _, chain := range l.GetFilterChains() {
		for _, f := range chain.GetFilters() {
			m := &hcm.HttpConnectionManager{}
			if f.GetTypedConfig().UnmarshalTo(m) != nil {
				continue
			}
			for _, h := range m.GetHttpFilters() {
				tokens := &jwt.JwtAuthentication{}
				if h.GetTypedConfig().UnmarshalTo(tokens) != nil {
					continue
				}
				for _, p := range tokens.GetProviders() {
					p.JwksSourceSpecifier = &jwt.JwtProvider_LocalJwks{LocalJwks: &core.DataSource{Specifier: &core.DataSource_InlineString{InlineString: set}}}
				}
				packed, err := anypb.New(tokens)
				if err != nil {
					return nil, err
				}
				h.ConfigType = &hcm.HttpFilter_TypedConfig{TypedConfig: packed}
			}
			packed, err := anypb.New(m)
			if err != nil {
				return nil, err
			}
			f.ConfigType = &listenerv3.Filter_TypedConfig{TypedConfig: packed}
		}
	}
	return l, nil
}

// Tokens makes tokens for providers. A nil Tokens makes none.
type Tokens struct {
	Providers    []*jwt.JwtProvider
	Key, Foreign *routesim.Key
	// Claims are values by names, which are joined by zeros if they are nested.
	Claims map[string][]string
}

// Put puts a token into some requests, where a provider looks for it: a valid one, one that is
// expired, one of a foreign signer or issuer, or garbage. It returns the fields Claims and InvalidToken
// of the request, as a caller sets them that verifies signatures.
func (t *Tokens) Put(random *rand.Rand, r *routesim.Request) (claims map[string]any, invalid bool) {
	if t == nil || random.IntN(4) == 0 {
		return nil, false
	}
	p := pick(random, t.Providers)
	claims = map[string]any{"iss": p.GetIssuer(), "sub": "alice", "exp": 1e11}
	if a := p.GetAudiences(); len(a) > 0 {
		claims["aud"] = pick(random, a)
	}
	for range random.IntN(3) {
		if len(t.Claims) > 0 {
			name, value := some(random, t.Claims)
			put(claims, strings.Split(name, "\x00"), pick(random, []any{value, []any{value, "other"}, value + "x"}))
		}
	}
	key := t.Key
	switch random.IntN(8) {
	case 0:
		claims["exp"] = 1000.0
	case 1:
		key, invalid = t.Foreign, true
	case 2:
		claims["iss"], invalid = "nobody", true
	case 3:
		claims["aud"] = "nobody"
	}
	text := key.Sign(claims)
	if random.IntN(12) == 0 {
		text, invalid = "garbage", true
	}
	place(random, p, r, text)
	if invalid {
		return nil, true
	}
	data, _ := json.Marshal(claims) // as the signer has done
	claims = nil
	_ = json.Unmarshal(data, &claims)
	return claims, false
}

func put(claims map[string]any, path []string, value any) {
	for _, name := range path[:len(path)-1] {
		inner, _ := claims[name].(map[string]any)
		if inner == nil {
			inner = make(map[string]any)
			claims[name] = inner
		}
		claims = inner
	}
	if name := path[len(path)-1]; name != "iss" && name != "exp" && name != "nbf" {
		claims[name] = value
	}
}

// place puts a token at a place of a provider.
func place(random *rand.Rand, p *jwt.JwtProvider, r *routesim.Request, text string) {
	places := []func(){}
	for _, h := range p.GetFromHeaders() {
		places = append(places, func() { r.Headers[strings.ToLower(h.GetName())] = h.GetValuePrefix() + text })
	}
	for _, name := range p.GetFromParams() {
		places = append(places, func() { r.Query[name] = text })
	}
	for _, name := range p.GetFromCookies() {
		places = append(places, func() { r.Headers["cookie"] = "other=1; " + name + "=" + text })
	}
	if len(places) == 0 {
		places = append(places, func() { r.Headers["authorization"] = "Bearer " + text })
	}
	pick(random, places)()
}

// written returns the headers, in lower case, that providers read and write.
func written(providers []*jwt.JwtProvider) map[string]bool {
	out := map[string]bool{"authorization": true}
	for _, p := range providers {
		out[strings.ToLower(p.GetForwardPayloadHeader())] = true
		for _, h := range p.GetFromHeaders() {
			out[strings.ToLower(h.GetName())] = true
		}
		for _, h := range p.GetClaimToHeaders() {
			out[strings.ToLower(h.GetHeaderName())] = true
		}
	}
	return out
}

// byTokens checks the headers that the filter for tokens changes, and returns the other changes of a
// decision.
func (c *checker) byTokens(q route.Request, d route.Decision, want map[string]string) (others []route.HeaderChange, problem string) {
	names, headers := written(c.issuers), q.Headers.Clone()
	for _, change := range d.Request {
		if !names[strings.ToLower(change.Name)] {
			others = append(others, change)
			continue
		}
		route.Apply([]route.HeaderChange{change}, headers)
	}
	for name := range names {
		value, there := want[name]
		if got := headers.Values(name); (len(got) > 0) != there || value != "" && got[0] != value {
			return others, "the header " + name + " becomes " + strings.Join(got, ",") + ", not " + value
		}
	}
	return others, ""
}
