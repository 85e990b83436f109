// SPDX-License-Identifier: Apache-2.0

package routesim

import (
	"regexp"
	"strings"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	matcher "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
)

// Choose returns the virtual host and the route that Envoy chooses for a request;
// nil for none.
func Choose(config *routev3.RouteConfiguration, r Request) (*routev3.VirtualHost, *routev3.Route) {
	host := strings.ToLower(r.Authority)
	if config.GetIgnorePortInHostMatching() {
		host = r.host()
	}
	vh := virtualHost(config, host)
	for _, route := range vh.GetRoutes() {
		if matches(route.GetMatch(), r) {
			return vh, route
		}
	}
	return vh, nil
}

// virtualHost searches the domains: an exact one, the longest that begins with a
// wildcard, the longest that ends with one, any.
func virtualHost(config *routev3.RouteConfiguration, host string) *routev3.VirtualHost {
	var best *routev3.VirtualHost
	rank := -1
	for _, vh := range config.GetVirtualHosts() {
		for _, d := range vh.GetDomains() {
			if r := domainRank(strings.ToLower(d), host); r > rank {
				best, rank = vh, r
			}
		}
	}
	return best
}

// domainRank is -1 for a domain that does not cover a host, and else the higher
// the better it is.
func domainRank(domain, host string) int {
	const exact, suffix, prefix = 1 << 30, 1 << 20, 1 << 10
	switch {
	case domain == host:
		return exact
	case domain == "*":
		return 0
	case strings.HasPrefix(domain, "*") && strings.HasSuffix(host, domain[1:]) && len(host) >= len(domain):
		return suffix + len(domain)
	case strings.HasSuffix(domain, "*") && strings.HasPrefix(host, domain[:len(domain)-1]) && len(host) >= len(domain):
		return prefix + len(domain)
	default:
		return -1
	}
}

func matches(m *routev3.RouteMatch, r Request) bool {
	fold := m.GetCaseSensitive() != nil && !m.GetCaseSensitive().GetValue()
	if !pathMatches(m, r.Path, fold) {
		return false
	}
	for _, h := range m.GetHeaders() {
		if !headerMatches(h, r) {
			return false
		}
	}
	for _, q := range m.GetQueryParameters() {
		value, ok := r.Query[q.GetName()]
		if !ok || q.GetStringMatch() != nil && !textMatches(q.GetStringMatch(), value) {
			return false
		}
	}
	for _, d := range m.GetDynamicMetadata() {
		if metadataMatches(d, r) == d.GetInvert() {
			return false
		}
	}
	return true
}

func pathMatches(m *routev3.RouteMatch, path string, fold bool) bool {
	cased := func(s string) string {
		if fold {
			return strings.ToLower(s)
		}
		return s
	}
	switch p := m.GetPathSpecifier().(type) {
	case *routev3.RouteMatch_Prefix:
		return strings.HasPrefix(cased(path), cased(p.Prefix))
	case *routev3.RouteMatch_PathSeparatedPrefix:
		rest, ok := strings.CutPrefix(cased(path), cased(p.PathSeparatedPrefix))
		return ok && (rest == "" || strings.HasPrefix(rest, "/"))
	case *routev3.RouteMatch_Path:
		return cased(path) == cased(p.Path)
	case *routev3.RouteMatch_SafeRegex:
		return fullMatch(p.SafeRegex.GetRegex(), path)
	default:
		return false
	}
}

// headerMatches: an inverted match of a missing header fails too, unless the match
// is for presence or takes it for empty.
func headerMatches(h *routev3.HeaderMatcher, r Request) bool {
	value, ok := r.header(h.GetName())
	if p, is := h.GetHeaderMatchSpecifier().(*routev3.HeaderMatcher_PresentMatch); is {
		return (ok == p.PresentMatch) != h.GetInvertMatch()
	}
	if !ok && !h.GetTreatMissingHeaderAsEmpty() {
		return false
	}
	return valueMatches(h, value) != h.GetInvertMatch()
}

func valueMatches(h *routev3.HeaderMatcher, value string) bool {
	switch s := h.GetHeaderMatchSpecifier().(type) {
	case *routev3.HeaderMatcher_StringMatch:
		return textMatches(s.StringMatch, value)
	case *routev3.HeaderMatcher_ExactMatch:
		return value == s.ExactMatch //nolint:staticcheck // This form is for gRPC clients.
	case *routev3.HeaderMatcher_PrefixMatch:
		return strings.HasPrefix(value, s.PrefixMatch) //nolint:staticcheck // This form is for gRPC clients.
	case *routev3.HeaderMatcher_SafeRegexMatch:
		return fullMatch(s.SafeRegexMatch.GetRegex(), value) //nolint:staticcheck // This form is for gRPC clients.
	default:
		return false
	}
}

func textMatches(m *matcher.StringMatcher, value string) bool {
	switch p := m.GetMatchPattern().(type) {
	case *matcher.StringMatcher_Exact:
		return value == p.Exact
	case *matcher.StringMatcher_Prefix:
		return strings.HasPrefix(value, p.Prefix)
	case *matcher.StringMatcher_Contains:
		return strings.Contains(value, p.Contains)
	case *matcher.StringMatcher_SafeRegex:
		return fullMatch(p.SafeRegex.GetRegex(), value)
	default:
		return false
	}
}

// metadataMatches knows the claims of tokens only.
func metadataMatches(m *matcher.MetadataMatcher, r Request) bool {
	var keys []string
	for _, s := range m.GetPath() {
		keys = append(keys, s.GetKey())
	}
	if m.GetFilter() != "envoy.filters.http.jwt_authn" || keys[0] != "payload" {
		return false
	}
	values, ok := r.Claims[strings.Join(keys[1:], ".")]
	return ok && claimMatches(m.GetValue(), values)
}

// claimMatches takes one value for a text and several for a list.
func claimMatches(m *matcher.ValueMatcher, values []string) bool {
	switch p := m.GetMatchPattern().(type) {
	case *matcher.ValueMatcher_PresentMatch:
		return p.PresentMatch
	case *matcher.ValueMatcher_StringMatch:
		return len(values) == 1 && textMatches(p.StringMatch, values[0])
	case *matcher.ValueMatcher_ListMatch:
		for _, v := range values {
			if len(values) > 1 && claimMatches(p.ListMatch.GetOneOf(), []string{v}) {
				return true
			}
		}
	case *matcher.ValueMatcher_OrMatch:
		for _, one := range p.OrMatch.GetValueMatchers() {
			if claimMatches(one, values) {
				return true
			}
		}
	}
	return false
}

func fullMatch(expression, value string) bool {
	re, err := regexp.Compile("^(?:" + expression + ")$")
	return err == nil && re.MatchString(value)
}
