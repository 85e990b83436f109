// SPDX-License-Identifier: Apache-2.0

package gatewayapi

import (
	"net/http"
	"strings"

	networking "istio.io/api/networking/v1alpha3"
)

// preflightSuffix is the suffix of the names of preflight routes. The names of rules have no tilde.
const preflightSuffix = "~preflight"

// preflightOf returns the route for the CORS preflights of one match of a rule. It returns nil if
// the match itself accepts preflights, or if there is no CORS policy. Before a cross-origin
// request, a browser sends a preflight with the method OPTIONS and without the headers of the
// request, so that a match of a method or of headers does not accept it. The CORS policy of the
// route answers preflights of every origin, so that they do not reach a backend. The route has
// backends, because Envoy applies the policies only of routes with backends.
func preflightOf(of *networking.HTTPRoute, match *networking.HTTPMatchRequest) *networking.HTTPRoute {
	method := match.GetMethod().GetExact()
	if of.GetCorsPolicy() == nil || len(of.GetRoute()) == 0 || len(match.GetHeaders()) == 0 && (method == "" || method == http.MethodOptions) {
		return nil
	}
	asked := &networking.StringMatch{} // any value
	if method != "" {
		asked = exact(method)
	}
	return &networking.HTTPRoute{
		Name: of.GetName() + preflightSuffix, CorsPolicy: of.GetCorsPolicy(), Route: of.GetRoute(),
		Match: []*networking.HTTPMatchRequest{{
			Uri: match.GetUri(), QueryParams: match.GetQueryParams(), Method: exact(http.MethodOptions),
			Headers: map[string]*networking.StringMatch{"origin": {}, "access-control-request-method": asked},
		}},
	}
}

// isPreflight reports whether preflightOf returned a route.
func isPreflight(route *networking.HTTPRoute) bool {
	return strings.HasSuffix(route.GetName(), preflightSuffix)
}
