// SPDX-License-Identifier: Apache-2.0

package gatewayapi

import (
	"net/http"
	"strings"

	networking "istio.io/api/networking/v1alpha3"
)

// preflightSuffix ends the names of routes for preflights. The names of rules have no tilde.
const preflightSuffix = "~preflight"

// preflightOf returns the route of the preflights for one match of a rule; nil: the match takes them, or there is no CORS
// policy. A browser asks with the method OPTIONS, and without the headers of the request, before it sends a request of
// another origin, so that a match of a method or of headers does not take what it asks. The policy of the route answers it,
// of whatever origin it is, so that it reaches no backend; Envoy looks at policies of routes with backends only.
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

// isPreflight reports whether a route was made by preflightOf.
func isPreflight(route *networking.HTTPRoute) bool {
	return strings.HasSuffix(route.GetName(), preflightSuffix)
}
