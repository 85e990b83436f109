// SPDX-License-Identifier: Apache-2.0

package routesim

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	httpfault "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/fault/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
)

// Envoy returns what Envoy does with a request.
func Envoy(config *routev3.RouteConfiguration, r Request) Outcome {
	vh, route := Choose(config, r)
	if vh.GetRequireTls() == routev3.VirtualHost_ALL && !r.TLS {
		return Outcome{Status: 301, Location: "https://" + r.Authority + r.Path}
	}
	if route == nil {
		return NoRoute()
	}
	out := Outcome{Headers: operations(route.GetRequestHeadersToAdd(), route.GetRequestHeadersToRemove(), "request ")}
	out.Headers = append(out.Headers, operations(route.GetResponseHeadersToAdd(), route.GetResponseHeadersToRemove(), "response ")...)
	switch a := route.GetAction().(type) {
	case *routev3.Route_Redirect:
		redirect(&out, a.Redirect, route.GetMatch(), r)
	case *routev3.Route_DirectResponse:
		out.Status = a.DirectResponse.GetStatus()
		out.Body = a.DirectResponse.GetBody().GetInlineString() + string(a.DirectResponse.GetBody().GetInlineBytes())
	case *routev3.Route_Route:
		forward(&out, a.Route, route.GetMatch(), r)
		out.Fault = injected(route)
	}
	slices.Sort(out.Headers)
	return out
}

func operations(add []*corev3.HeaderValueOption, remove []string, what string) []string {
	var out []string
	for _, o := range add {
		verb := "add "
		if o.GetAppendAction() == corev3.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD {
			verb = "set "
		}
		out = append(out, what+verb+o.GetHeader().GetKey()+"="+o.GetHeader().GetValue())
	}
	for _, name := range remove {
		out = append(out, what+"remove "+name)
	}
	return out
}

func redirect(out *Outcome, a *routev3.RedirectAction, m *routev3.RouteMatch, r Request) {
	out.Status = map[routev3.RedirectAction_RedirectResponseCode]uint32{
		routev3.RedirectAction_MOVED_PERMANENTLY: 301, routev3.RedirectAction_FOUND: 302, routev3.RedirectAction_SEE_OTHER: 303,
		routev3.RedirectAction_TEMPORARY_REDIRECT: 307, routev3.RedirectAction_PERMANENT_REDIRECT: 308,
	}[a.GetResponseCode()]
	scheme, path := r.Scheme, r.Path
	if a.GetSchemeRedirect() != "" {
		scheme = a.GetSchemeRedirect()
	}
	host := keptAuthority(r, scheme, a.GetPortRedirect() != 0)
	if a.GetHostRedirect() != "" {
		host = a.GetHostRedirect()
	}
	if a.GetPathRedirect() != "" {
		path = a.GetPathRedirect()
	} else if a.GetPrefixRewrite() != "" {
		path = a.GetPrefixRewrite() + strings.TrimPrefix(r.Path, m.GetPrefix()+m.GetPathSeparatedPrefix())
	} else if x := a.GetRegexRewrite(); x != nil {
		path = substitute(x.GetPattern().GetRegex(), x.GetSubstitution(), r.Path)
	}
	if p := a.GetPortRedirect(); p != 0 {
		host += ":" + strconv.Itoa(int(p))
	}
	out.Location = scheme + "://" + host + path
}

// keptAuthority is the authority that a redirect keeps: with its port, unless there is
// a new one, or the scheme becomes another and the old one implied the port.
func keptAuthority(r Request, scheme string, newPort bool) string {
	name, port := r.split()
	implied := map[string]string{"http": ":80", "https": ":443"}[r.Scheme]
	if newPort || scheme != r.Scheme && port == implied {
		return name
	}
	return name + port
}

func forward(out *Outcome, a *routev3.RouteAction, m *routev3.RouteMatch, r Request) {
	out.Targets = map[string]uint32{}
	if c := a.GetCluster(); c != "" {
		out.Targets[c] = 1
	}
	for _, c := range a.GetWeightedClusters().GetClusters() {
		out.Targets[c.GetName()] += c.GetWeight().GetValue()
		if h := c.GetHostRewriteLiteral(); h != "" && a.GetHostRewriteLiteral() == "" { // The route's own is set last.
			if out.Hosts == nil {
				out.Hosts = map[string]string{}
			}
			out.Hosts[c.GetName()] = h
		}
		ops := operations(c.GetRequestHeadersToAdd(), c.GetRequestHeadersToRemove(), c.GetName()+" request ")
		ops = append(ops, operations(c.GetResponseHeadersToAdd(), c.GetResponseHeadersToRemove(), c.GetName()+" response ")...)
		out.Headers = append(out.Headers, ops...)
	}
	out.Path, out.Host = r.Path, r.Authority
	if p := a.GetPrefixRewrite(); p != "" {
		out.Path = p + rest(m, r.Path)
	}
	if x := a.GetRegexRewrite(); x != nil {
		out.Path = substitute(x.GetPattern().GetRegex(), x.GetSubstitution(), r.Path)
	}
	if h := a.GetHostRewriteLiteral(); h != "" {
		out.Host = h
	}
	out.Timeout = a.GetTimeout().AsDuration()
	if d := a.GetMaxStreamDuration().GetMaxStreamDuration(); d != nil {
		out.Timeout = d.AsDuration()
	}
	if p := a.GetRetryPolicy(); p != nil {
		out.Retries, out.RetryOn = p.GetNumRetries().GetValue(), fmt.Sprint(p.GetRetryOn(), p.GetRetriableStatusCodes())
	}
	for _, mirror := range a.GetRequestMirrorPolicies() {
		if out.Mirrors == nil {
			out.Mirrors = map[string]uint32{}
		}
		out.Mirrors[mirror.GetCluster()] += millionths(mirror.GetRuntimeFraction().GetDefaultValue())
	}
}

// rest is the part of a path that a prefix rewrite keeps: the part after the prefix, or nothing if
// the whole path matched.
func rest(m *routev3.RouteMatch, path string) string {
	if p, ok := m.GetPathSpecifier().(*routev3.RouteMatch_Prefix); ok {
		return path[len(p.Prefix):]
	}
	if p := m.GetPathSeparatedPrefix(); p != "" {
		return path[len(p):]
	}
	return ""
}

// substitute replaces as RE2 does, which writes groups as \1.
func substitute(expression, with, path string) string {
	re, err := regexp.Compile(expression)
	if err != nil {
		return path
	}
	with = regexp.MustCompile(`\\(\d)`).ReplaceAllString(strings.ReplaceAll(with, "$", "$$"), "$${$1}")
	return re.ReplaceAllString(path, with)
}

func millionths(p *typev3.FractionalPercent) uint32 {
	switch p.GetDenominator() {
	case typev3.FractionalPercent_HUNDRED:
		return p.GetNumerator() * 10_000
	case typev3.FractionalPercent_TEN_THOUSAND:
		return p.GetNumerator() * 100
	default:
		return p.GetNumerator()
	}
}

func injected(route *routev3.Route) string {
	config, ok := route.GetTypedPerFilterConfig()["envoy.filters.http.fault"]
	if !ok {
		return ""
	}
	var f httpfault.HTTPFault
	if err := config.UnmarshalTo(&f); err != nil {
		return err.Error()
	}
	var out string
	if d := f.GetDelay(); d != nil {
		out += fmt.Sprintf("delay %s for %d ", d.GetFixedDelay().AsDuration(), millionths(d.GetPercentage()))
	}
	if a := f.GetAbort(); a != nil {
		out += fmt.Sprintf("abort http %d grpc %d for %d ", a.GetHttpStatus(), a.GetGrpcStatus(), millionths(a.GetPercentage()))
	}
	return out
}
