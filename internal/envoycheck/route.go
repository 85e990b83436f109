// SPDX-License-Identifier: Apache-2.0

package envoycheck

import (
	"math"
	"strings"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"

	"github.com/pilotkit/pilotkit/internal/envoycheck/headerformat"
)

// defaultBody is the maximum length of a direct response unless the configuration sets it.
const defaultBody = 4096

func (r *report) routes(c *routev3.RouteConfiguration) {
	domains := make(map[string]string)
	names := make(map[string]bool)
	for _, vh := range c.GetVirtualHosts() {
		if names[vh.GetName()] {
			r.fail("virtual host %q twice", vh.GetName())
		}
		names[vh.GetName()] = true
		for _, d := range vh.GetDomains() {
			key := strings.ToLower(d)
			if other, taken := domains[key]; taken {
				r.fail("domain %q in %q and %q", d, other, vh.GetName())
			}
			domains[key] = vh.GetName()
		}
		r.domains(vh)
		for i, route := range vh.GetRoutes() {
			r.route(route, mostBody(c), func(format string, args ...any) {
				r.fail("%s, route %d: "+format, append([]any{vh.GetName(), i}, args...)...)
			})
		}
	}
}

// mostBody returns the maximum length of direct responses.
func mostBody(c *routev3.RouteConfiguration) uint32 {
	if c.GetMaxDirectResponseBodySizeBytes() != nil {
		return c.GetMaxDirectResponseBodySizeBytes().GetValue()
	}
	return defaultBody
}

// domains checks each domain of a virtual host separately.
func (r *report) domains(vh *routev3.VirtualHost) {
	for _, d := range vh.GetDomains() {
		if !domain(d) {
			r.fail("domain %q", d)
		}
	}
}

// domain reports whether a domain is "*", a name, or a name with an asterisk at one end.
func domain(d string) bool {
	switch n := strings.Count(d, "*"); {
	case d == "" || n > 1:
		return false
	case n == 1:
		return strings.HasPrefix(d, "*") || strings.HasSuffix(d, "*")
	default:
		return true
	}
}

func (r *report) route(route *routev3.Route, mostBody uint32, at func(string, ...any)) {
	r.match(route.GetMatch(), at)
	for _, list := range [][]*core.HeaderValueOption{route.GetRequestHeadersToAdd(), route.GetResponseHeadersToAdd()} {
		headers(list, at)
	}
	switch action := route.GetAction().(type) {
	case *routev3.Route_Route:
		r.forward(action.Route, at)
	case *routev3.Route_DirectResponse:
		body := action.DirectResponse.GetBody()
		if n := len(body.GetInlineString()) + len(body.GetInlineBytes()); uint64(n) > uint64(mostBody) {
			at("a direct response of %d bytes", n)
		}
	case nil:
		at("no action")
	}
	if r.grpc && (route.GetRedirect() != nil || route.GetDirectResponse() != nil) {
		at("grpc-js knows neither redirects nor direct responses")
	}
}

func (r *report) forward(action *routev3.RouteAction, at func(string, ...any)) {
	if weighted := action.GetWeightedClusters(); weighted != nil {
		sum := uint64(0)
		for _, w := range weighted.GetClusters() {
			sum += uint64(w.GetWeight().GetValue())
			headers(w.GetRequestHeadersToAdd(), at)
			headers(w.GetResponseHeadersToAdd(), at)
		}
		if sum == 0 || sum > math.MaxUint32 {
			at("the sum of the weights is %d", sum)
		}
	} else if action.GetCluster() == "" && action.GetClusterHeader() == "" {
		at("no cluster")
	}
	if action.GetRegexRewrite() != nil && action.GetPrefixRewrite() != "" {
		at("a prefix rewrite and a regex rewrite")
	}
}

// match checks the match of a route.
func (r *report) match(m *routev3.RouteMatch, at func(string, ...any)) {
	switch m.GetPathSpecifier().(type) {
	case nil:
		at("no path")
	case *routev3.RouteMatch_PathSeparatedPrefix:
		if r.grpc {
			at("gRPC clients know no path-separated prefix")
		}
	}
	for _, h := range m.GetHeaders() {
		if !r.grpc {
			continue
		}
		if h.GetStringMatch() != nil {
			at("C-core refuses a string match of header %s", h.GetName())
		}
		if present, ok := h.GetHeaderMatchSpecifier().(*routev3.HeaderMatcher_PresentMatch); ok && !present.PresentMatch {
			at("grpc-js inverts present_match: false of header %s", h.GetName())
		}
	}
	if r.grpc && len(m.GetQueryParameters()) > 0 {
		at("grpc-js ignores query parameters")
	}
}

// headers checks the commands in header values.
func headers(list []*core.HeaderValueOption, at func(string, ...any)) {
	for _, h := range list {
		if err := headerformat.Check(h.GetHeader().GetValue()); err != nil {
			at("header %s: %w", h.GetHeader().GetKey(), err)
		}
	}
}
