// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"net/http"
	"time"

	networking "istio.io/api/networking/v1alpha3"
)

// checkCORS checks a CORS policy; nil is valid.
func checkCORS(at *field, policy *networking.CorsPolicy) {
	if policy == nil {
		return
	}
	if len(policy.AllowOrigin) > 0 { //nolint:staticcheck // Users still write the deprecated field.
		at.child("allowOrigin").warn("is deprecated; use allowOrigins")
	}
	for place, origin := range elements(at, "allowOrigins", policy.AllowOrigins) {
		checkOriginMatch(place, origin)
	}
	for i, method := range policy.AllowMethods {
		if method != "*" && !isHTTPMethod(method) {
			at.elem("allowMethods", i).refuse("must be * or a method of HTTP, in upper case, is %q", method)
		}
	}
	checkHeaderNames(at, "allowHeaders", policy.AllowHeaders)
	checkHeaderNames(at, "exposeHeaders", policy.ExposeHeaders)
	if age := policy.MaxAge; age != nil && checkDurationValid(at.child("maxAge"), age) {
		if d := age.AsDuration(); d <= 0 || d%time.Second != 0 {
			at.child("maxAge").refuse("must be whole seconds, at least 1s, is %s", d)
		}
	}
	checkEnum(at.child("unmatchedPreflights"), policy.UnmatchedPreflights)
}

// checkHeaderNames checks a list of names of headers; "*" is a token too.
func checkHeaderNames(at *field, name string, headers []string) {
	for i, header := range headers {
		if problem := headerNameProblem(header); problem != "" {
			at.elem(name, i).refuse("%s, is %q", problem, header)
		}
	}
}

func isHTTPMethod(s string) bool {
	switch s {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch,
		http.MethodDelete, http.MethodConnect, http.MethodOptions, http.MethodTrace:
		return true
	default:
		return false
	}
}
