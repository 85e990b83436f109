// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"strings"

	rbacv3 "github.com/envoyproxy/go-control-plane/envoy/config/rbac/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	matcher "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	security "istio.io/api/security/v1beta1"
)

// A gRPC server that rejects a part of a listener does not start, or keeps serving by its old
// policies. The rules for gRPC servers therefore use only forms that grpc-go, C-core since 1.51 and
// grpc-js all know (gRFC A41). Metadata and server names are not among them: before 1.82.1, grpc-go
// leaves them out, so that what is left matches more (GHSA-hrxh-6v49-42gf).

// DenyFilter is the name of the filter of gRPC servers that rejects the matches of DENY policies.
// It precedes HTTPFilter, which has the ALLOW policies.
const DenyFilter = HTTPFilter + ".DENY"

// ForServer returns the rules that a gRPC server enforces, deny before allow. A nil result denies
// nothing or allows everything. A server cannot ask a provider, so CUSTOM policies deny their
// matches (S4). A server neither logs nor supports dry runs, so AUDIT policies and dry-run policies
// are dropped (S3, S5).
func (t Translator) ForServer(policies []Policy) (deny, allow *rbacv3.RBAC) {
	if !t.Form.grpc() {
		t.Form = GRPC
	}
	for _, p := range policies {
		switch p.Spec.GetAction() {
		case security.AuthorizationPolicy_AUDIT:
		case security.AuthorizationPolicy_ALLOW:
			t.addTo(&allow, p)
		default:
			t.addTo(&deny, p)
		}
	}
	if allow != nil && len(allow.Policies) == 0 {
		allow.Policies["nothing"] = nothing() // not all servers are known to deny everything if there are no policies
	}
	return deny, allow
}

// Nobody returns rules that deny everything.
func Nobody() *rbacv3.RBAC {
	return &rbacv3.RBAC{Action: rbacv3.RBAC_DENY, Policies: map[string]*rbacv3.Policy{"everything": everything()}}
}

// addTo adds a policy to rules, which may be nil, unless it is a dry run.
func (t Translator) addTo(rules **rbacv3.RBAC, p Policy) {
	if p.DryRun {
		return
	}
	if *rules == nil {
		*rules = &rbacv3.RBAC{Action: actionOf(p.Spec.GetAction()), Policies: make(map[string]*rbacv3.Policy)}
	}
	maps.Copy((*rules).Policies, t.policies(p))
}

// grpc reports whether the form belongs to a gRPC server.
func (form Form) grpc() bool { return form == GRPC || form == GRPCNode }

// errUnconnected is the reason why an address or a port cannot be checked.
var errUnconnected = errors.New("servers of grpc-js do not know the addresses and ports of connections")

// errReserved is the reason why a header cannot be checked (S8).
var errReserved = errors.New("gRPC servers ignore headers of this name")

// grpcHeaderName returns a server's name of a header (S19).
func grpcHeaderName(name string) (string, error) {
	name = strings.ToLower(name)
	switch {
	case name == ":scheme" || name == "te" || strings.HasPrefix(name, "grpc-"):
		return "", fmt.Errorf("%q: %w", name, errReserved)
	case name == "host":
		return ":authority", nil
	default:
		return name, nil
	}
}

// grpcHeader is header with fields that all servers know: C-core 1.51 does not know string_match.
//
//nolint:staticcheck // see above
func grpcHeader(name, value string, ignoreCase bool) *routev3.HeaderMatcher {
	m := &routev3.HeaderMatcher{Name: name}
	suffix, open := strings.CutPrefix(value, "*")
	start, goesOn := strings.CutSuffix(value, "*")
	switch {
	case value == anything && strings.HasPrefix(name, ":"): // every call has it
		m.HeaderMatchSpecifier = &routev3.HeaderMatcher_PresentMatch{PresentMatch: true}
	case value == anything: // grpc-go treats an empty header as absent (S98)
		m.HeaderMatchSpecifier = &routev3.HeaderMatcher_SafeRegexMatch{SafeRegexMatch: &matcher.RegexMatcher{Regex: ".*"}}
	case ignoreCase:
		m.HeaderMatchSpecifier = &routev3.HeaderMatcher_SafeRegexMatch{SafeRegexMatch: &matcher.RegexMatcher{Regex: withoutCase(value)}}
	case open:
		m.HeaderMatchSpecifier = &routev3.HeaderMatcher_SuffixMatch{SuffixMatch: suffix}
	case goesOn:
		m.HeaderMatchSpecifier = &routev3.HeaderMatcher_PrefixMatch{PrefixMatch: start}
	default:
		m.HeaderMatchSpecifier = &routev3.HeaderMatcher_ExactMatch{ExactMatch: value}
	}
	return m
}

// withoutCase returns the regular expression that matches like text, in any case.
func withoutCase(value string) string {
	before, after := "", ""
	if suffix, open := strings.CutPrefix(value, "*"); open {
		value, before = suffix, ".*"
	} else if start, goesOn := strings.CutSuffix(value, "*"); goesOn {
		value, after = start, ".*"
	}
	return "(?i)" + before + regexp.QuoteMeta(value) + after
}

// grpcTemplate returns the regular expression for a path template (S7).
func grpcTemplate(value string) *matcher.StringMatcher {
	escaped := regexp.QuoteMeta(value)
	return regex(strings.NewReplacer(regexp.QuoteMeta(oneSegment), "[^/]+", regexp.QuoteMeta(allSegments), ".*").Replace(escaped))
}
