// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"net/url"
	"regexp"
	"strings"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/internal/jwtauthn"
	"github.com/pilotkit/pilotkit/internal/rbac"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// passes reports whether the call satisfies the request conditions of a match. It ignores
// conditions on ports, gateways and clients. A nil match accepts every call. With elements,
// prefixes match whole path elements.
func (x *explaining) passes(m *networking.HTTPMatchRequest, elements bool) bool {
	return m == nil || x.call.passes(m, elements) && x.passesClaims(m)
}

// passesClaims reports whether the call's verified token has the claims that a match requires. A
// call without a verified token has no claims.
func (x *explaining) passesClaims(m *networking.HTTPMatchRequest) bool {
	see := rbac.Call{}
	see.Note(jwtauthn.Filter, jwtauthn.Payload, x.claims)
	for name, want := range m.GetHeaders() {
		if claim := envoy.ClaimMatch(name, want, false); claim != nil && !see.HasMetadata(claim) {
			return false
		}
	}
	for name, without := range m.GetWithoutHeaders() {
		if claim := envoy.ClaimMatch(name, without, true); claim != nil && !see.HasMetadata(claim) {
			return false
		}
	}
	return true
}

// passes evaluates a match like explaining.passes, but ignores claims.
func (c *Call) passes(m *networking.HTTPMatchRequest, elements bool) bool {
	path, query, _ := strings.Cut(c.Path, "?")
	if !passesPath(m.GetUri(), path, m.GetIgnoreUriCase(), elements) ||
		!passesValue(m.GetMethod(), c.Method) || !passesValue(m.GetAuthority(), string(c.Host)) ||
		!passesValue(m.GetScheme(), c.Scheme) {
		return false
	}
	for name, want := range m.GetHeaders() {
		value, present := c.Headers[strings.ToLower(name)]
		if envoy.ClaimMatch(name, want, false) == nil && !passesHeader(want, value, present) {
			return false
		}
	}
	for name, without := range m.GetWithoutHeaders() {
		value, present := c.Headers[strings.ToLower(name)]
		// A missing header counts as empty, except for a match that accepts any value.
		if envoy.ClaimMatch(name, without, true) == nil && passesHeader(without, value, present || without.GetMatchType() != nil) {
			return false
		}
	}
	params, _ := url.ParseQuery(query)
	for name, want := range m.GetQueryParams() {
		if !passesHeader(want, params.Get(name), params.Has(name)) {
			return false
		}
	}
	return true
}

func passesPath(want *networking.StringMatch, path string, ignoreCase, elements bool) bool {
	cased := func(s string) string { return s }
	if ignoreCase {
		cased = strings.ToLower
	}
	switch m := want.GetMatchType().(type) {
	case *networking.StringMatch_Exact:
		return cased(path) == cased(m.Exact)
	case *networking.StringMatch_Prefix:
		if !elements {
			return strings.HasPrefix(cased(path), cased(m.Prefix))
		}
		rest, ok := strings.CutPrefix(cased(path), cased(strings.TrimSuffix(m.Prefix, "/")))
		return ok && (rest == "" || rest[0] == '/')
	default:
		return passesValue(want, path)
	}
}

// passesHeader matches a value that may be missing. A match without a condition requires its
// presence.
func passesHeader(want *networking.StringMatch, value string, present bool) bool {
	return present && passesValue(want, value)
}

// passesValue matches a value. A nil match accepts every value.
func passesValue(want *networking.StringMatch, value string) bool {
	switch m := want.GetMatchType().(type) {
	case *networking.StringMatch_Exact:
		return value == m.Exact
	case *networking.StringMatch_Prefix:
		return strings.HasPrefix(value, m.Prefix)
	case *networking.StringMatch_Regex:
		if m.Regex == "*" {
			return true
		}
		re, err := regexp.Compile("^(?:" + m.Regex + ")$")
		return err == nil && re.MatchString(value)
	default:
		return true
	}
}
