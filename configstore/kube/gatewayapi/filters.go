// SPDX-License-Identifier: Apache-2.0

package gatewayapi

import (
	"regexp"
	"strings"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
	networking "istio.io/api/networking/v1alpha3"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// anyOrigin matches every origin.
const anyOrigin = `^[a-zA-Z][a-zA-Z0-9+.-]*://[^/\s?#]+$`

// addFilter adds a filter of a rule to a route. An unsupported filter is a problem, because it must
// not be ignored.
func (r *resolver) addFilter(out *networking.HTTPRoute, f *gatewayv1.HTTPRouteFilter) problem {
	switch {
	case f.Type == gatewayv1.HTTPRouteFilterRequestHeaderModifier && f.RequestHeaderModifier != nil:
		headersOf(&out.Headers).Request = headerOperations(f.RequestHeaderModifier)
	case f.Type == gatewayv1.HTTPRouteFilterResponseHeaderModifier && f.ResponseHeaderModifier != nil:
		headersOf(&out.Headers).Response = headerOperations(f.ResponseHeaderModifier)
	case f.Type == gatewayv1.HTTPRouteFilterRequestRedirect && f.RequestRedirect != nil:
		out.Redirect = redirectOf(f.RequestRedirect)
	case f.Type == gatewayv1.HTTPRouteFilterURLRewrite && f.URLRewrite != nil:
		out.Rewrite = rewriteOf(f.URLRewrite)
	case f.Type == gatewayv1.HTTPRouteFilterRequestMirror && f.RequestMirror != nil:
		r.addMirror(out, f.RequestMirror)
	case f.Type == gatewayv1.HTTPRouteFilterCORS && f.CORS != nil:
		out.CorsPolicy = corsOf(f.CORS)
	default:
		return problem{reasonInvalidFilter, "filters of type " + string(f.Type) + " are not supported"}
	}
	return problem{}
}

// headersOf returns the value of p, which it allocates if it is nil.
func headersOf(p **networking.Headers) *networking.Headers {
	if *p == nil {
		*p = &networking.Headers{}
	}
	return *p
}

func headerOperations(f *gatewayv1.HTTPHeaderFilter) *networking.Headers_HeaderOperations {
	return &networking.Headers_HeaderOperations{Set: headerMap(f.Set), Add: headerMap(f.Add), Remove: f.Remove}
}

// headerMap returns headers by name; of several headers with one name the first counts. The values
// in VirtualServices are format strings, so that the percent signs of a route's literal values are
// escaped.
func headerMap(list []gatewayv1.HTTPHeader) map[string]string {
	if len(list) == 0 {
		return nil
	}
	out := make(map[string]string, len(list))
	for _, h := range list {
		name := strings.ToLower(string(h.Name))
		if _, again := out[name]; !again {
			out[name] = strings.ReplaceAll(h.Value, "%", "%%")
		}
	}
	return out
}

// replacedPath returns the replacement of a path, which begins with a slash. Without one, a request
// is malformed, and a redirect leads to another host.
func replacedPath(value string) string {
	if strings.HasPrefix(value, "/") {
		return value
	}
	return "/" + value
}

// replacedPrefix returns the replacement of a prefix in whole path elements: without a trailing
// slash, and never empty.
func replacedPrefix(value string) string { return replacedPath(strings.TrimRight(value, "/")) }

func redirectOf(f *gatewayv1.HTTPRequestRedirectFilter) *networking.HTTPRedirect {
	out := &networking.HTTPRedirect{
		Scheme: deref(f.Scheme, ""), Authority: string(deref(f.Hostname, "")),
		RedirectCode: uint32(deref(f.StatusCode, 302)), //nolint:gosec // 301 to 308
	}
	switch {
	case f.Port != nil:
		out.RedirectPort = &networking.HTTPRedirect_Port{Port: uint32(*f.Port)} //nolint:gosec // 1 to 65535
	case f.Scheme != nil:
		out.RedirectPort = &networking.HTTPRedirect_DerivePort{DerivePort: networking.HTTPRedirect_FROM_PROTOCOL_DEFAULT}
	default:
		out.RedirectPort = &networking.HTTPRedirect_DerivePort{DerivePort: networking.HTTPRedirect_FROM_REQUEST_PORT}
	}
	if f.Path != nil {
		switch f.Path.Type {
		case gatewayv1.FullPathHTTPPathModifier:
			out.Uri = replacedPath(deref(f.Path.ReplaceFullPath, ""))
		case gatewayv1.PrefixMatchHTTPPathModifier:
			out.PrefixRewrite = replacedPrefix(deref(f.Path.ReplacePrefixMatch, ""))
		}
	}
	return out
}

// rewriteOf returns nil if the filter rewrites nothing.
func rewriteOf(f *gatewayv1.HTTPURLRewriteFilter) *networking.HTTPRewrite {
	out := &networking.HTTPRewrite{Authority: string(deref(f.Hostname, ""))}
	if f.Path != nil {
		switch f.Path.Type {
		case gatewayv1.PrefixMatchHTTPPathModifier:
			out.Uri = replacedPrefix(deref(f.Path.ReplacePrefixMatch, ""))
		case gatewayv1.FullPathHTTPPathModifier:
			// A backslash in the replacement of a regular expression begins a reference.
			out.UriRegexRewrite = &networking.RegexRewrite{
				Match: "/.*", Rewrite: strings.ReplaceAll(replacedPath(deref(f.Path.ReplaceFullPath, "")), `\`, `\\`),
			}
		}
	}
	if out.Authority == "" && out.Uri == "" && out.UriRegexRewrite == nil {
		return nil
	}
	return out
}

// addMirror adds a mirror, unless it cannot be resolved.
func (r *resolver) addMirror(out *networking.HTTPRoute, f *gatewayv1.HTTPRequestMirrorFilter) {
	to, wrong := r.destination(&f.BackendRef)
	if wrong.is() {
		r.note(wrong)
		return
	}
	mirror := &networking.HTTPMirrorPolicy{Destination: to}
	switch {
	case f.Fraction != nil:
		of := float64(deref(f.Fraction.Denominator, 100))
		mirror.Percentage = &networking.Percent{Value: 100 * float64(f.Fraction.Numerator) / of}
	case f.Percent != nil:
		mirror.Percentage = &networking.Percent{Value: float64(*f.Percent)}
	}
	out.Mirrors = append(out.Mirrors, mirror)
}

func corsOf(f *gatewayv1.HTTPCORSFilter) *networking.CorsPolicy {
	out := &networking.CorsPolicy{
		AllowMethods: texts(f.AllowMethods), AllowHeaders: texts(f.AllowHeaders), ExposeHeaders: texts(f.ExposeHeaders),
		UnmatchedPreflights: networking.CorsPolicy_IGNORE,
	}
	for _, origin := range f.AllowOrigins {
		out.AllowOrigins = append(out.AllowOrigins, originMatch(string(origin)))
	}
	if f.AllowCredentials != nil {
		out.AllowCredentials = wrapperspb.Bool(*f.AllowCredentials)
	}
	if f.MaxAge > 0 {
		out.MaxAge = &durationpb.Duration{Seconds: int64(f.MaxAge)}
	}
	return out
}

// originMatch converts an origin. A wildcard in it stands for one or more labels.
func originMatch(origin string) *networking.StringMatch {
	if origin == "*" {
		return &networking.StringMatch{MatchType: &networking.StringMatch_Regex{Regex: anyOrigin}}
	}
	if !strings.Contains(origin, "*") {
		return exact(origin)
	}
	expression := "^" + strings.ReplaceAll(regexp.QuoteMeta(origin), `\*`, ".*") + "$"
	return &networking.StringMatch{MatchType: &networking.StringMatch_Regex{Regex: expression}}
}

func texts[T ~string](list []T) []string {
	var out []string
	for _, s := range list {
		out = append(out, string(s))
	}
	return out
}

// backendHeaders returns the header operations of one backend. Other filters of backends are not
// supported.
func backendHeaders(filters []gatewayv1.HTTPRouteFilter) (*networking.Headers, problem) {
	var out *networking.Headers
	for i := range filters {
		f := &filters[i]
		switch {
		case f.Type == gatewayv1.HTTPRouteFilterRequestHeaderModifier && f.RequestHeaderModifier != nil:
			headersOf(&out).Request = headerOperations(f.RequestHeaderModifier)
		case f.Type == gatewayv1.HTTPRouteFilterResponseHeaderModifier && f.ResponseHeaderModifier != nil:
			headersOf(&out).Response = headerOperations(f.ResponseHeaderModifier)
		default:
			return nil, problem{reasonInvalidFilter, "filters of type " + string(f.Type) + " are not supported for backends"}
		}
	}
	return out, problem{}
}
