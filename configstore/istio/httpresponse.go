// SPDX-License-Identifier: Apache-2.0

package istio

import networking "istio.io/api/networking/v1alpha3"

// The sizes of a direct response's body that Istio 1.30 warns of and refuses:
// the body is part of every proxy's configuration.
const (
	largeBody = 100 << 10
	maxBody   = 1 << 20
)

// checkStatus refuses numbers that are no final HTTP status. Istio 1.30 lets 600
// pass.
func checkStatus[N int32 | uint32](at *field, status N) {
	if status < 200 || status > 599 {
		at.refuse("must be 200–599, is %d", status)
	}
}

func checkDirectResponse(at *field, response *networking.HTTPDirectResponse) {
	checkStatus(at.child("status"), response.Status)
	if response.Body == nil {
		return
	}
	size, name := 0, ""
	switch body := response.Body.Specifier.(type) {
	case *networking.HTTPBody_String_:
		size, name = len(body.String_), "string"
	case *networking.HTTPBody_Bytes:
		size, name = len(body.Bytes), "bytes"
	default:
		at.child("body").warn("is empty without string or bytes")
	}
	switch {
	case size > maxBody:
		at.child("body").child(name).refuse("must have at most %d bytes, has %d", maxBody, size)
	case size > largeBody:
		at.child("body").child(name).warn("has %d bytes, which every proxy's configuration carries", size)
	}
}

// checkRedirect checks the redirect of a route.
func checkRedirect(at *field, route *networking.HTTPRoute) {
	redirect := route.Redirect
	if redirect.Uri == "" && redirect.Authority == "" && redirect.RedirectPort == nil && redirect.Scheme == "" &&
		redirect.PrefixRewrite == "" {
		at.refuse("must have one of uri, authority, port, derivePort, scheme, prefixRewrite")
	}
	if redirect.PrefixRewrite != "" {
		checkPrefixRewrite(at.child("prefixRewrite"), route)
	}
	switch port := redirect.RedirectPort.(type) {
	case *networking.HTTPRedirect_Port:
		checkPortNumber(at.child("port"), port.Port)
	case *networking.HTTPRedirect_DerivePort:
		checkEnum(at.child("derivePort"), port.DerivePort)
	}
	switch redirect.Scheme {
	case "", "http", "https":
	default:
		at.child("scheme").refuse("must be http or https, is %q", redirect.Scheme)
	}
	switch redirect.RedirectCode {
	case 0, 301, 302, 303, 307, 308:
	default:
		// These are what Envoy's redirect action knows.
		at.child("redirectCode").refuse("must be 301, 302, 303, 307 or 308, is %d", redirect.RedirectCode)
	}
}

// checkPrefixRewrite checks that there is a prefix to rewrite.
func checkPrefixRewrite(at *field, route *networking.HTTPRoute) {
	if route.Redirect.Uri != "" {
		at.refuse("must not be set together with uri")
	}
	for i, match := range route.Match {
		if _, prefix := match.GetUri().GetMatchType().(*networking.StringMatch_Prefix); match.GetUri() != nil && !prefix {
			at.refuse("must not be set together with match[%d].uri, which is not a prefix", i)
		}
	}
}

func checkRewrite(at *field, rewrite *networking.HTTPRewrite) {
	if rewrite.Uri == "" && rewrite.Authority == "" && rewrite.UriRegexRewrite == nil {
		at.refuse("must have one of uri, uriRegexRewrite, authority")
	}
	if rewrite.UriRegexRewrite == nil {
		return
	}
	checkRegex(at.child("uriRegexRewrite").child("match"), rewrite.UriRegexRewrite.Match)
	checkSet(at.child("uriRegexRewrite").child("rewrite"), rewrite.UriRegexRewrite.Rewrite, "is required")
	if rewrite.Uri != "" {
		at.child("uriRegexRewrite").refuse("must not be set together with uri")
	}
}
