// SPDX-License-Identifier: Apache-2.0

package xdsbuild

import (
	"bytes"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	matcher "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1alpha3"
)

// maxResponseBody is the maximum size of a direct response's body in the route configurations of
// this package. Envoy's default is 4 KiB.
const maxResponseBody = 1 << 20

// redirect returns a redirect, nil for a code that Envoy does not support.
func (s *RouteScope) redirect(m *routev3.RouteMatch, r *networking.HTTPRedirect) *routev3.Route_Redirect {
	code, ok := redirectCode(r.GetRedirectCode())
	if !ok {
		return nil
	}
	out := &routev3.RedirectAction{HostRedirect: r.GetAuthority(), ResponseCode: code}
	if r.GetPrefixRewrite() != "" && r.GetUri() == "" {
		if prefix, substitution := s.replacement(m, r.GetPrefixRewrite()); substitution != nil {
			out.PathRewriteSpecifier = &routev3.RedirectAction_RegexRewrite{RegexRewrite: substitution}
		} else {
			out.PathRewriteSpecifier = &routev3.RedirectAction_PrefixRewrite{PrefixRewrite: prefix}
		}
	} else {
		out.PathRewriteSpecifier = &routev3.RedirectAction_PathRedirect{PathRedirect: r.GetUri()}
	}
	if r.GetScheme() != "" {
		out.SchemeRewriteSpecifier = &routev3.RedirectAction_SchemeRedirect{SchemeRedirect: r.GetScheme()}
	}
	out.PortRedirect = s.redirectPort(r)
	return &routev3.Route_Redirect{Redirect: out}
}

func redirectCode(code uint32) (routev3.RedirectAction_RedirectResponseCode, bool) {
	switch code {
	case 0, 301:
		return routev3.RedirectAction_MOVED_PERMANENTLY, true
	case 302:
		return routev3.RedirectAction_FOUND, true
	case 303:
		return routev3.RedirectAction_SEE_OTHER, true
	case 307:
		return routev3.RedirectAction_TEMPORARY_REDIRECT, true
	case 308:
		return routev3.RedirectAction_PERMANENT_REDIRECT, true
	default:
		return 0, false
	}
}

// redirectPort returns the port of a redirect, 0 for the default port of the scheme, which is not
// written into the location.
func (s *RouteScope) redirectPort(r *networking.HTTPRedirect) uint32 {
	var port uint32
	switch p := r.GetRedirectPort().(type) {
	case *networking.HTTPRedirect_Port:
		port = p.Port
	case *networking.HTTPRedirect_DerivePort:
		if p.DerivePort == networking.HTTPRedirect_FROM_REQUEST_PORT {
			port = s.Port
		}
	}
	if port == s.impliedPort(r) || port > maxPort {
		return 0
	}
	return port
}

// impliedPort returns the default port of the scheme of a redirect's location.
func (s *RouteScope) impliedPort(r *networking.HTTPRedirect) uint32 {
	if r.GetScheme() == "https" || r.GetScheme() == "" && s.TLS {
		return 443
	}
	return 80
}

// forcesImpliedPort reports whether a redirect leads to the default port of its scheme even if the
// client's host has another port. A redirect to another host needs no such port, because Envoy
// drops the client's port then.
func (s *RouteScope) forcesImpliedPort(r *networking.HTTPRedirect) bool {
	if r == nil || r.GetAuthority() != "" {
		return false
	}
	switch p := r.GetRedirectPort().(type) {
	case *networking.HTTPRedirect_Port:
		return p.Port == s.impliedPort(r)
	case *networking.HTTPRedirect_DerivePort:
		return p.DerivePort == networking.HTTPRedirect_FROM_PROTOCOL_DEFAULT
	default:
		return false
	}
}

// withPortWritten returns a route, preceded by a route for requests whose host has a port if the
// rule redirects to the default port of the scheme. Envoy keeps the port of the host unless the
// route sets another, and writes any port that the route sets into the location, even ":443". With
// two routes the location has no port for requests without a port, which are the majority.
func (s *RouteScope) withPortWritten(rule *networking.HTTPRoute, route *routev3.Route) []*routev3.Route {
	if route.GetRedirect() == nil || !s.forcesImpliedPort(rule.GetRedirect()) {
		return []*routev3.Route{route}
	}
	ported := proto.CloneOf(route)
	ported.GetRedirect().PortRedirect = s.impliedPort(rule.GetRedirect())
	ported.GetMatch().Headers = append(ported.GetMatch().GetHeaders(), &routev3.HeaderMatcher{
		Name: authorityHeader,
		HeaderMatchSpecifier: &routev3.HeaderMatcher_StringMatch{StringMatch: &matcher.StringMatcher{
			MatchPattern: &matcher.StringMatcher_Contains{Contains: portSeparator},
		}},
	})
	return []*routev3.Route{ported, route}
}

// portSeparator occurs in every host with a port.
const portSeparator = ":"

// ofPortWritten reports whether a match belongs to the first route of withPortWritten and every
// request matches the second. The header match identifies it, because no match of a rule tests
// whether a header contains a text.
func ofPortWritten(m *routev3.RouteMatch) bool {
	h := m.GetHeaders()
	if len(h) != 1 || h[0].GetName() != authorityHeader || h[0].GetStringMatch().GetContains() != portSeparator {
		return false
	}
	rest := proto.CloneOf(m)
	rest.Headers = nil
	return matchesAll(rest)
}

// directResponse returns a direct response, without a body that is too large.
func directResponse(r *networking.HTTPDirectResponse) *routev3.Route_DirectResponse {
	out := &routev3.DirectResponseAction{Status: r.GetStatus()}
	switch b := r.GetBody().GetSpecifier().(type) {
	case *networking.HTTPBody_String_:
		if len(b.String_) <= maxResponseBody {
			out.Body = &corev3.DataSource{Specifier: &corev3.DataSource_InlineString{InlineString: b.String_}}
		}
	case *networking.HTTPBody_Bytes:
		if len(b.Bytes) <= maxResponseBody {
			out.Body = &corev3.DataSource{Specifier: &corev3.DataSource_InlineBytes{InlineBytes: bytes.Clone(b.Bytes)}}
		}
	}
	return &routev3.Route_DirectResponse{DirectResponse: out}
}
