// SPDX-License-Identifier: Apache-2.0

package routesim

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/grpc/codes"
	networking "istio.io/api/networking/v1alpha3"
)

// apply returns the outcome of a request by the first rule that matches it.
func (w where) apply(rules []rule, r Request) Outcome {
	for _, rule := range rules {
		for _, condition := range rule.conditions {
			if meets(condition, r) {
				return w.do(rule, lastURI(condition), r)
			}
		}
	}
	return NoRoute()
}

func meets(condition []*networking.HTTPMatchRequest, r Request) bool {
	for _, m := range condition {
		if !holds(m, r) {
			return false
		}
	}
	return true
}

// lastURI is the match of the path in a condition: that of a delegate, if there are
// two.
func lastURI(condition []*networking.HTTPMatchRequest) *networking.StringMatch {
	var uri *networking.StringMatch
	for _, m := range condition {
		if m.GetUri() != nil {
			uri = m.GetUri()
		}
	}
	return uri
}

func holds(m *networking.HTTPMatchRequest, r Request) bool {
	if uri := m.GetUri(); uri != nil {
		path := r.Path
		if m.GetIgnoreUriCase() && uri.GetRegex() == "" {
			path = strings.ToLower(path)
			uri = lowered(uri)
		}
		if !is(uri, path) {
			return false
		}
	}
	for name, want := range map[string]*networking.StringMatch{":method": m.GetMethod(), ":scheme": m.GetScheme(), ":authority": m.GetAuthority()} {
		if value, _ := r.header(name); want != nil && !is(want, value) {
			return false
		}
	}
	for name, want := range m.GetHeaders() {
		if !r.has(name, want, false) {
			return false
		}
	}
	for name, want := range m.GetWithoutHeaders() {
		if r.has(name, want, true) {
			return false
		}
	}
	for name, want := range m.GetQueryParams() {
		if value, ok := r.Query[name]; !ok || !is(want, value) {
			return false
		}
	}
	return true
}

// has reports whether a header, or a claim, has a value. If it must not have it, a
// missing header counts as empty, unless any value is meant.
func (r Request) has(name string, want *networking.StringMatch, must bool) bool {
	if claim, ok := strings.CutPrefix(name, "@request.auth.claims."); ok {
		return slices.ContainsFunc(r.Claims[claim], func(v string) bool { return is(want, v) })
	}
	value, ok := r.header(name)
	return (ok || must && want.GetMatchType() != nil) && is(want, value)
}

// is reports whether a value matches. A match without a condition matches all values.
func is(m *networking.StringMatch, value string) bool {
	switch t := m.GetMatchType().(type) {
	case *networking.StringMatch_Exact:
		return value == t.Exact
	case *networking.StringMatch_Prefix:
		return strings.HasPrefix(value, t.Prefix)
	case *networking.StringMatch_Regex:
		return fullMatch(t.Regex, value)
	default:
		return true
	}
}

func lowered(m *networking.StringMatch) *networking.StringMatch {
	if p, ok := m.GetMatchType().(*networking.StringMatch_Prefix); ok {
		return &networking.StringMatch{MatchType: &networking.StringMatch_Prefix{Prefix: strings.ToLower(p.Prefix)}}
	}
	return &networking.StringMatch{MatchType: &networking.StringMatch_Exact{Exact: strings.ToLower(m.GetExact())}}
}

// do returns the outcome by a rule of a request with a path that matched by uri.
func (w where) do(rule rule, uri *networking.StringMatch, r Request) Outcome {
	var out Outcome
	switch {
	case rule.GetRedirect() != nil:
		out = w.redirected(rule.GetRedirect(), r)
	case rule.GetDirectResponse() != nil:
		d := rule.GetDirectResponse()
		out = Outcome{Status: d.GetStatus(), Body: d.GetBody().GetString_()}
	default:
		out = w.sent(rule, uri, r)
	}
	out.Headers = append(out.Headers, headerChanges(rule.GetHeaders(), "")...)
	slices.Sort(out.Headers)
	return out
}

func (w where) redirected(d *networking.HTTPRedirect, r Request) Outcome {
	out := Outcome{Status: d.GetRedirectCode()}
	if out.Status == 0 {
		out.Status = 301
	}
	scheme, path := r.Scheme, r.Path
	if d.GetScheme() != "" {
		scheme = d.GetScheme()
	}
	if d.GetUri() != "" {
		path = d.GetUri()
	}
	port := d.GetPort()
	if d.GetDerivePort() == networking.HTTPRedirect_FROM_REQUEST_PORT {
		port = w.port
	}
	implied := map[string]uint32{"http": 80, "https": 443}[scheme]
	if derived, ok := d.GetRedirectPort().(*networking.HTTPRedirect_DerivePort); ok && derived.DerivePort == networking.HTTPRedirect_FROM_PROTOCOL_DEFAULT {
		port = implied
	}
	// It is written only where the client wrote one, which would remain else.
	fromRequest := d.GetDerivePort() == networking.HTTPRedirect_FROM_REQUEST_PORT
	if port == implied && (fromRequest || d.GetAuthority() != "" || !strings.Contains(r.Authority, ":")) {
		port = 0
	}
	host := keptAuthority(r, scheme, port != 0)
	if d.GetAuthority() != "" {
		host = d.GetAuthority()
	}
	if port != 0 {
		host += ":" + strconv.Itoa(int(port))
	}
	out.Location = scheme + "://" + host + path
	return out
}

// sent is a request that is forwarded.
func (w where) sent(rule rule, uri *networking.StringMatch, r Request) Outcome {
	out := Outcome{Targets: map[string]uint32{}, Path: r.Path, Host: r.Authority, Timeout: rule.GetTimeout().AsDuration()}
	own := map[string]string{} // hosts by cluster
	hosts := []string{rule.GetRewrite().GetAuthority(), authority(rule.GetHeaders())}
	for _, d := range rule.GetRoute() {
		cluster := w.cluster(d.GetDestination(), rule.namespace)
		if len(rule.GetRoute()) == 1 {
			out.Targets[cluster] = 1
			out.Headers = append(out.Headers, headerChanges(d.GetHeaders(), "")...)
			hosts = append(hosts, authority(d.GetHeaders()))
		} else if d.GetWeight() > 0 {
			out.Targets[cluster] += uint32(d.GetWeight())
			out.Headers = append(out.Headers, headerChanges(d.GetHeaders(), cluster+" ")...)
			if h := authority(d.GetHeaders()); h != "" {
				own[cluster] = h
			}
		}
	}
	if i := slices.IndexFunc(hosts, func(h string) bool { return h != "" }); i >= 0 {
		out.Host = hosts[i]
	} else if len(own) > 0 {
		out.Hosts = own
	}
	if to := rule.GetRewrite().GetUri(); to != "" {
		if out.Path = to; uri == nil {
			out.Path += strings.TrimPrefix(r.Path, "/")
		} else if uri.GetPrefix() != "" {
			out.Path += r.Path[len(uri.GetPrefix()):]
		}
	}
	if x := rule.GetRewrite().GetUriRegexRewrite(); x != nil {
		out.Path = substitute(x.GetMatch(), x.GetRewrite(), r.Path)
	}
	retried(&out, rule.GetRetries())
	if m := rule.GetMirror(); m != nil {
		share := uint32(1_000_000)
		if p := rule.GetMirrorPercentage(); p != nil {
			share = uint32(p.GetValue() * 10_000)
		}
		if share > 0 {
			out.Mirrors = map[string]uint32{w.cluster(m, rule.namespace): share}
		}
	}
	out.Fault = faultOf(rule.GetFault())
	return out
}

func retried(out *Outcome, r *networking.HTTPRetry) {
	if r == nil {
		out.Retries, out.RetryOn = 2, defaultConditions
		return
	}
	out.Retries = uint32(r.GetAttempts())
	if out.Retries > 0 {
		out.RetryOn = defaultConditions
	}
	if r.GetRetryOn() != "" {
		out.RetryOn = r.GetRetryOn() + "[]"
	}
}

func faultOf(f *networking.HTTPFaultInjection) string {
	var out string
	if d := f.GetDelay(); d != nil {
		out += fmt.Sprintf("delay %s for %d ", d.GetFixedDelay().AsDuration(), uint32(d.GetPercentage().GetValue()*10_000))
	}
	if a := f.GetAbort(); a != nil {
		out += fmt.Sprintf("abort http %d grpc %d for %d ", a.GetHttpStatus(), grpcCode(a.GetGrpcStatus()), uint32(a.GetPercentage().GetValue()*10_000))
	}
	return out
}

// grpcCode knows the two names that tests use.
func grpcCode(name string) codes.Code {
	return map[string]codes.Code{"UNAVAILABLE": codes.Unavailable, "NOT_FOUND": codes.NotFound}[name]
}

// cluster returns where a destination leads to: the port that it names, or else the only one of its
// service, or else that of the request. A service beyond the Sidecar is as good as none.
func (w where) cluster(d *networking.Destination, namespace string) string {
	host, port := fullName(d.GetHost(), namespace), w.port
	for _, s := range w.mesh.Services {
		if strings.EqualFold(s.Host, host) && w.mesh.sees(w.proxy, s) && w.inScope(s) {
			host = s.Host
			if len(s.Ports) == 1 {
				port = s.Ports[0]
			}
		}
	}
	if n := d.GetPort().GetNumber(); n != 0 {
		port = n
	}
	return fmt.Sprintf("outbound|%d|%s|%s", port, d.GetSubset(), host)
}

func authority(h *networking.Headers) string {
	for _, values := range []map[string]string{h.GetRequest().GetSet(), h.GetRequest().GetAdd()} {
		for name, value := range values {
			if strings.EqualFold(name, "host") || strings.EqualFold(name, ":authority") {
				return value
			}
		}
	}
	return ""
}

func headerChanges(h *networking.Headers, by string) []string {
	var out []string
	for what, o := range map[string]*networking.Headers_HeaderOperations{by + "request ": h.GetRequest(), by + "response ": h.GetResponse()} {
		for verb, values := range map[string]map[string]string{"set ": o.GetSet(), "add ": o.GetAdd()} {
			for name, value := range values {
				if !strings.EqualFold(name, "host") && !strings.EqualFold(name, ":authority") {
					out = append(out, what+verb+name+"="+value)
				}
			}
		}
		for _, name := range o.GetRemove() {
			out = append(out, what+"remove "+name)
		}
	}
	return out
}
