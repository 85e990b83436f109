// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"fmt"
	"net/netip"
	"regexp"
	"strconv"
	"strings"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	rbacv3 "github.com/envoyproxy/go-control-plane/envoy/config/rbac/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	template "github.com/envoyproxy/go-control-plane/envoy/extensions/path/match/uri_template/v3"
	matcher "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// anything is a star that stands for any text except an empty one.
const anything = "*"

// text returns the matcher of a value: "*SUFFIX", "PREFIX*", "*" for any text except an empty one,
// or else the exact text. Other stars are literal (S47).
func text(value string) *matcher.StringMatcher {
	if value == anything {
		return regex(".+")
	}
	if end, ok := strings.CutPrefix(value, "*"); ok {
		return suffix(end)
	}
	if p, ok := strings.CutSuffix(value, "*"); ok {
		return prefix(p)
	}
	return exact(value)
}

func exact(value string) *matcher.StringMatcher {
	return &matcher.StringMatcher{MatchPattern: &matcher.StringMatcher_Exact{Exact: value}}
}

func prefix(value string) *matcher.StringMatcher {
	return &matcher.StringMatcher{MatchPattern: &matcher.StringMatcher_Prefix{Prefix: value}}
}

func suffix(value string) *matcher.StringMatcher {
	return &matcher.StringMatcher{MatchPattern: &matcher.StringMatcher_Suffix{Suffix: value}}
}

func regex(expression string) *matcher.StringMatcher {
	return &matcher.StringMatcher{MatchPattern: &matcher.StringMatcher_SafeRegex{SafeRegex: &matcher.RegexMatcher{Regex: expression}}}
}

// pattern returns the regular expression of a value, with star in place of each star.
func pattern(value, star string) string {
	return strings.ReplaceAll(regexp.QuoteMeta(value), `\*`, star)
}

// header returns the matcher of a header. A star matches a header that is present, even if it is
// empty (S48).
func (form Form) header(name, value string, ignoreCase bool) *routev3.HeaderMatcher {
	if form.grpc() {
		return grpcHeader(name, value, ignoreCase)
	}
	if value == anything {
		return &routev3.HeaderMatcher{Name: name, HeaderMatchSpecifier: &routev3.HeaderMatcher_PresentMatch{PresentMatch: true}}
	}
	m := text(value)
	m.IgnoreCase = ignoreCase
	return &routev3.HeaderMatcher{Name: name, HeaderMatchSpecifier: &routev3.HeaderMatcher_StringMatch{StringMatch: m}}
}

// addresses returns the range of an address, or of "ADDRESS/BITS".
func (form Form) addresses(value string) (*core.CidrRange, error) {
	r, err := addresses(value)
	if err != nil || !form.grpc() {
		return r, err
	}
	if form == GRPCNode {
		return nil, errUnconnected
	}
	// grpc-js compares the whole address, including the host bits.
	first, err := netip.MustParseAddr(r.GetAddressPrefix()).Prefix(int(r.GetPrefixLen().GetValue()))
	if err != nil {
		return nil, err
	}
	r.AddressPrefix = first.Addr().String()
	return r, nil
}

// addresses returns the range of an address, or of "ADDRESS/BITS".
func addresses(value string) (*core.CidrRange, error) {
	address, bits, isRange := strings.Cut(value, "/")
	a, err := netip.ParseAddr(address)
	if err != nil {
		return nil, fmt.Errorf("%q is neither an IP address nor a CIDR block", value)
	}
	n := a.BitLen()
	if isRange {
		if n, err = strconv.Atoi(bits); err != nil || n < 0 || n > a.BitLen() {
			return nil, fmt.Errorf("%q is not a CIDR block", value)
		}
	}
	// Envoy compares addresses without zones.
	address, _, _ = strings.Cut(address, "%")
	return &core.CidrRange{AddressPrefix: address, PrefixLen: wrapperspb.UInt32(uint32(n))}, nil //nolint:gosec // at most 128
}

// metadata returns the matcher of a value at a path in a filter's dynamic metadata.
func metadata(filter string, path []string, value *matcher.ValueMatcher) *matcher.MetadataMatcher {
	m := &matcher.MetadataMatcher{Filter: filter, Value: value}
	for _, key := range path {
		m.Path = append(m.Path, &matcher.MetadataMatcher_PathSegment{
			Segment: &matcher.MetadataMatcher_PathSegment_Key{Key: key},
		})
	}
	return m
}

// ofRequest selects the dynamic metadata of the request, instead of the route's metadata.
func ofRequest(m *matcher.MetadataMatcher) *rbacv3.SourcedMetadata {
	return &rbacv3.SourcedMetadata{MetadataMatcher: m, MetadataSource: rbacv3.MetadataSource_DYNAMIC}
}

func textValue(m *matcher.StringMatcher) *matcher.ValueMatcher {
	return &matcher.ValueMatcher{MatchPattern: &matcher.ValueMatcher_StringMatch{StringMatch: m}}
}

// listed matches a list with an element that value matches.
func listed(value *matcher.ValueMatcher) *matcher.ValueMatcher {
	return &matcher.ValueMatcher{MatchPattern: &matcher.ValueMatcher_ListMatch{ListMatch: &matcher.ListMatcher{
		MatchPattern: &matcher.ListMatcher_OneOf{OneOf: value},
	}}}
}

// anyValue matches if one of the matchers does.
func anyValue(values ...*matcher.ValueMatcher) *matcher.ValueMatcher {
	if len(values) == 1 {
		return values[0]
	}
	return &matcher.ValueMatcher{MatchPattern: &matcher.ValueMatcher_OrMatch{OrMatch: &matcher.OrMatcher{ValueMatchers: values}}}
}

// The operators of path templates.
const (
	oneSegment  = "{*}"
	allSegments = "{**}"
)

// ordinaryPath matches the paths that operators of Envoy's templates accept (Envoy 1.40,
// uri_template_matcher): paths without "[" or "]", and, if paths are not normalized, without other
// characters that should be encoded.
const ordinaryPath = "[-a-zA-Z0-9._~%!$&'()*+,;:@=/]*"

// oneOrdinarySegment matches the texts that the operator "*" of Envoy's templates accepts.
const oneOrdinarySegment = "[-a-zA-Z0-9._~%!$&'()*+,;:@=]+"

// TemplateExpression returns an RE2 expression that matches the same whole paths as an Envoy
// template.
func TemplateExpression(template string) string {
	operators := strings.NewReplacer(`\*\*`, ordinaryPath, `\*`, oneOrdinarySegment)
	return operators.Replace(regexp.QuoteMeta(template))
}

func isTemplate(path string) bool {
	return strings.Contains(path, oneSegment) || strings.Contains(path, allSegments)
}

// parsable matches the path templates that Envoy can parse: segments of literal characters or {*}, after
// {**} of literal ones only. Other templates crash Envoy (1.36, 1.40).
var parsable = regexp.MustCompile(`^(/([-\w.~%!$&'()+,;:@=]+|\{\*}))*(/\{\*\*}(/[-\w.~%!$&'()+,;:@=]+)*)?/?$`)

func pathTemplate(value string) (*rbacv3.Permission, error) {
	if !parsable.MatchString(value) {
		return nil, fmt.Errorf("%q is no path template that Envoy can parse", value)
	}
	config, err := anypb.New(&template.UriTemplateMatchConfig{
		PathTemplate: strings.NewReplacer(oneSegment, "*", allSegments, "**").Replace(value),
	})
	if err != nil {
		return nil, fmt.Errorf("path template %q: %w", value, err)
	}
	return &rbacv3.Permission{Rule: &rbacv3.Permission_UriTemplate{
		UriTemplate: &core.TypedExtensionConfig{Name: "uri-template", TypedConfig: config},
	}}, nil
}

// widePath is path for fields where a mismatch admits the request. It also matches a path that no
// template accepts if the path begins and ends like the template, because otherwise a "[" in it
// would bypass a policy that denies.
func widePath(value string) (*rbacv3.Permission, error) {
	exactly, err := path(value)
	if err != nil || !isTemplate(value) {
		return exactly, err
	}
	s := permissions()
	parts := []*rbacv3.Permission{s.not(urlPath(regex(ordinaryPath)))}
	if before := value[:strings.IndexByte(value, '{')]; before != "" {
		parts = append(parts, urlPath(prefix(before)))
	}
	if after := value[strings.LastIndexByte(value, '}')+1:]; after != "" {
		parts = append(parts, urlPath(suffix(after)))
	}
	return s.or([]*rbacv3.Permission{exactly, s.allOf(parts)}), nil
}
