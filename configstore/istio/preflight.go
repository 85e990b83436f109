// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"net/http"
	"strings"

	networking "istio.io/api/networking/v1alpha3"
)

// warnUnmatchedPreflights warns about CORS policies that no preflight reaches. A browser sends
// preflights with the method OPTIONS, and without the headers of the request, so a match of another
// method, or of such a header, does not match them.
func warnUnmatchedPreflights(spec *field, routes []*networking.HTTPRoute) {
	taken, all := preflightsTaken(routes)
	if all {
		return
	}
	for at, route := range elements(spec, "http", routes) {
		if route.GetCorsPolicy() == nil {
			continue
		}
		for i, match := range route.GetMatch() {
			if !takesPreflights(match) && !taken[match.GetUri().String()] {
				at.elem("match", i).warn("takes no preflights for corsPolicy, which have the method OPTIONS and none of the headers of the request: " +
					"add a route with the policy for them")
			}
		}
	}
}

// preflightsTaken returns the paths whose preflights are matched by a route with a CORS policy, and
// whether one such route matches all paths.
func preflightsTaken(routes []*networking.HTTPRoute) (paths map[string]bool, all bool) {
	paths = map[string]bool{}
	for _, route := range routes {
		if route.GetCorsPolicy() == nil {
			continue
		}
		all = all || len(route.GetMatch()) == 0
		for _, match := range route.GetMatch() {
			if takesPreflights(match) {
				all = all || match.GetUri() == nil
				paths[match.GetUri().String()] = true
			}
		}
	}
	return paths, all
}

// takesPreflights reports whether a match can take preflights, as far as methods and headers say.
func takesPreflights(match *networking.HTTPMatchRequest) bool {
	switch m := match.GetMethod().GetMatchType().(type) {
	case *networking.StringMatch_Exact:
		if m.Exact != http.MethodOptions {
			return false
		}
	case *networking.StringMatch_Prefix:
		if !strings.HasPrefix(http.MethodOptions, m.Prefix) {
			return false
		}
	}
	for name := range match.GetHeaders() {
		if !inPreflights(strings.ToLower(name)) {
			return false
		}
	}
	return true
}

// inPreflights reports whether preflights can have a header: browsers, and proxies in front of
// them, add headers that scripts cannot set.
func inPreflights(name string) bool {
	switch name {
	case "host", "origin", "referer", "user-agent", "connection", "cache-control", "pragma", "dnt", "via", "forwarded":
		return true
	}
	for _, prefix := range []string{":", "access-control-request-", "accept", "sec-", "x-forwarded-", "x-envoy-"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}
