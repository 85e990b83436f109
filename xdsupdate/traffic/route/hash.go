// SPDX-License-Identifier: Apache-2.0

package route

import (
	"net/http"
	"strings"
	"time"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	cors "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/cors/v3"
)

// HashKind is a property of requests.
type HashKind uint8

const (
	// HashHeader is the value of a header.
	HashHeader HashKind = iota
	// HashCookie is the value of a cookie. With a TTL the proxy sets the cookie if it is missing.
	HashCookie
	// HashSource is the address of the client.
	HashSource
	// HashParameter is the value of a query parameter.
	HashParameter
)

// HashPolicy is a property of requests that chooses the endpoint.
type HashPolicy struct {
	Kind HashKind
	// Name is the name of the header, cookie or parameter.
	Name string
	// Path and TTL belong to a cookie that the proxy sets. It sets none if the TTL is nil.
	Path string
	TTL  *time.Duration
}

func newHashPolicy(h *routev3.RouteAction_HashPolicy) HashPolicy {
	switch s := h.GetPolicySpecifier().(type) {
	case *routev3.RouteAction_HashPolicy_Header_:
		return HashPolicy{Kind: HashHeader, Name: http.CanonicalHeaderKey(s.Header.GetHeaderName())}
	case *routev3.RouteAction_HashPolicy_Cookie_:
		out := HashPolicy{Kind: HashCookie, Name: s.Cookie.GetName(), Path: s.Cookie.GetPath()}
		if s.Cookie.GetTtl() != nil {
			ttl := s.Cookie.GetTtl().AsDuration()
			out.TTL = &ttl
		}
		return out
	case *routev3.RouteAction_HashPolicy_QueryParameter_:
		return HashPolicy{Kind: HashParameter, Name: s.QueryParameter.GetName()}
	default:
		return HashPolicy{Kind: HashSource}
	}
}

// HashKey returns the key for the consistent hash of a request: the values of the policies, joined
// by NUL bytes. Without any value it returns false, and any endpoint will do.
func (r *Rule) HashKey(of *Request) (key string, ok bool) {
	c := call{Request: *of, read: true}
	for _, h := range r.Hash {
		value, there := "", false
		switch h.Kind {
		case HashHeader:
			value, there = c.header(headerName(h.Name))
		case HashCookie:
			if cookie, err := (&http.Request{Header: of.Headers}).Cookie(h.Name); err == nil {
				value, there = cookie.Value, true
			}
		case HashParameter:
			value, there = c.parameter(h.Name)
		default:
			if there = of.Source.IsValid(); there {
				value = of.Source.Unmap().String()
			}
		}
		if there {
			key, ok = key+value+"\x00", true
		}
	}
	return key, ok
}

// CORS answers preflights, and adds headers to the responses for accepted origins. The lists are as
// the headers have them, separated by commas; empty ones add no header.
type CORS struct {
	Methods, Headers, Exposed, MaxAge string
	Credentials                       bool
	// ForwardUnmatched: preflights of other origins are forwarded, instead of answered.
	ForwardUnmatched bool
	origins          []text
}

func newCORS(m *cors.CorsPolicy) (*CORS, error) {
	out := &CORS{
		Methods: m.GetAllowMethods(), Headers: m.GetAllowHeaders(), Exposed: m.GetExposeHeaders(), MaxAge: m.GetMaxAge(),
		Credentials: m.GetAllowCredentials().GetValue(), ForwardUnmatched: m.GetForwardNotMatchingPreflights().GetValue(),
	}
	for _, o := range m.GetAllowOriginStringMatch() {
		matches, err := newText(o)
		if err != nil {
			return nil, err
		}
		if o.GetExact() == "*" {
			matches = func(string) bool { return true }
		}
		out.origins = append(out.origins, matches)
	}
	return out, nil
}

// Accepts reports whether an origin is accepted.
func (c *CORS) Accepts(origin string) bool {
	for _, matches := range c.origins {
		if matches(origin) {
			return strings.TrimSpace(origin) != ""
		}
	}
	return false
}
