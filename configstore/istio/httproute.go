// SPDX-License-Identifier: Apache-2.0

package istio

import networking "istio.io/api/networking/v1alpha3"

// checkHTTPRoute checks an HTTP route of a VirtualService.
func checkHTTPRoute(at *field, route *networking.HTTPRoute, scope routeScope) {
	for place, match := range elements(at, "match", route.Match) {
		checkHTTPMatch(place, match, scope)
	}
	checkAction(at, route, scope)
	checkDestinations(at, route.Route, scope)
	for i, destination := range route.Route {
		checkHeaders(at.elem("route", i).child("headers"), destination.GetHeaders())
	}
	if route.Redirect != nil {
		checkRedirect(at.child("redirect"), route)
	}
	if route.DirectResponse != nil {
		checkDirectResponse(at.child("directResponse"), route.DirectResponse)
	}
	if route.Rewrite != nil {
		checkRewrite(at.child("rewrite"), route.Rewrite)
	}
	checkDuration(at.child("timeout"), route.Timeout)
	checkRetries(at.child("retries"), route.Retries)
	checkFault(at.child("fault"), route.Fault)
	checkMirrors(at, route)
	checkCORS(at.child("corsPolicy"), route.CorsPolicy)
	checkHeaders(at.child("headers"), route.Headers)
	checkAuthorityOnce(at, route)
}

// checkAction checks that a route does one thing: forward, redirect, answer, or
// include the routes of a delegate.
func checkAction(at *field, route *networking.HTTPRoute, scope routeScope) {
	actions := 0
	for _, used := range []bool{len(route.Route) > 0, route.Redirect != nil, route.DirectResponse != nil, route.Delegate != nil} {
		if used {
			actions++
		}
	}
	if actions != 1 {
		at.refuse("must have exactly one of route, redirect, directResponse, delegate, has %d", actions)
	}
	if route.Delegate != nil {
		to := at.child("delegate")
		if scope.delegate {
			to.refuse("must not be set in a delegate: there is one level only")
		}
		if name, namespace := route.Delegate.Name, route.Delegate.Namespace; !isLabelPrefix(name) || namespace != "" && !isDNSLabel(namespace) {
			to.warn("is %q in namespace %q, which no VirtualService can be: the route is left out", name, namespace)
		}
	}
	if route.Redirect != nil {
		checkForwardsNothing(at, route, "redirect")
	}
	if route.DirectResponse != nil {
		checkForwardsNothing(at, route, "directResponse")
	}
}

// checkForwardsNothing rejects settings for forwarded requests in a route with an action that
// answers requests itself.
func checkForwardsNothing(at *field, route *networking.HTTPRoute, action string) {
	if route.Rewrite != nil {
		at.child("rewrite").refuse("must not be set together with %s, which forwards nothing", action)
	}
	if route.Fault != nil {
		at.child("fault").refuse("must not be set together with %s, which forwards nothing", action)
	}
}

// checkDNSName rejects strings that cannot be object names.
func checkDNSName(at *field, name string) {
	if name == "" {
		at.refuse("is required")
		return
	}
	if !isLabelPrefix(name) {
		at.refuse("must be an object's name (DNS labels with dots), is %q", name)
	}
}

// maxMirrors bounds the copies of a request, which cost a proxy as much as it does.
const maxMirrors = 10

func checkMirrors(at *field, route *networking.HTTPRoute) {
	if route.Mirror != nil {
		checkDestination(at.child("mirror"), route.Mirror)
		if len(route.Mirrors) > 0 {
			at.child("mirrors").refuse("must not be set together with mirror")
		}
	}
	if n := len(route.Mirrors); n > maxMirrors {
		at.child("mirrors").refuse("must have at most %d elements, for each of which each request is copied, has %d", maxMirrors, n)
	}
	for place, mirror := range elements(at, "mirrors", route.Mirrors) {
		checkDestination(place.child("destination"), mirror.Destination)
		checkPercent(place.child("percentage").child("value"), mirror.GetPercentage().GetValue())
	}
	if p := route.MirrorPercent; p != nil { //nolint:staticcheck // Users still write the deprecated field.
		checkPercent(at.child("mirrorPercent"), p.Value)
		at.child("mirrorPercent").warn("is deprecated; use mirrorPercentage")
	}
	checkPercent(at.child("mirrorPercentage").child("value"), route.GetMirrorPercentage().GetValue())
}
