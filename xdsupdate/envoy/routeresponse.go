// SPDX-License-Identifier: Apache-2.0

package envoy

import (
	"bytes"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	networking "istio.io/api/networking/v1alpha3"
)

// maxResponseBody is the largest body of a direct response that the route
// configurations of this package admit; Envoy's default is 4 KiB.
const maxResponseBody = 1 << 20

// redirect returns nil for a code that Envoy does not know.
func (s *RouteScope) redirect(r *networking.HTTPRedirect) *routev3.Route_Redirect {
	code, ok := redirectCode(r.GetRedirectCode())
	if !ok {
		return nil
	}
	out := &routev3.RedirectAction{HostRedirect: r.GetAuthority(), ResponseCode: code}
	if r.GetPrefixRewrite() != "" && r.GetUri() == "" {
		out.PathRewriteSpecifier = &routev3.RedirectAction_PrefixRewrite{PrefixRewrite: r.GetPrefixRewrite()}
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

// redirectPort is 0 for the port that the scheme implies, which is not written
// out.
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
	scheme := r.GetScheme()
	if scheme == "" && s.TLS {
		scheme = "https"
	}
	implied := uint32(80)
	if scheme == "https" {
		implied = 443
	}
	if port == implied || port > maxPort {
		return 0
	}
	return port
}

// directResponse leaves out a body that is too large.
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
