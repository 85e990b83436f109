// SPDX-License-Identifier: Apache-2.0

package routecheck

import (
	"maps"
	"math/rand/v2"
	"net/netip"
	"regexp/syntax"
	"slices"
	"strings"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	rbacv3 "github.com/envoyproxy/go-control-plane/envoy/config/rbac/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	jwt "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/jwt_authn/v3"
	template "github.com/envoyproxy/go-control-plane/envoy/extensions/path/match/uri_template/v3"
	matcher "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protopath"
	"google.golang.org/protobuf/reflect/protorange"

	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// words are the values that the conditions of resources are about, and some others.
type words struct {
	hosts, paths, methods, serverNames, principals []string
	headers, queries, claims                       map[string][]string
	addresses                                      []netip.Addr
	issuers                                        []*jwt.JwtProvider
}

// wordsOf collects the words of resources.
func wordsOf(sent Sent) (*words, error) {
	w := &words{
		hosts: []string{"beside.example.org"}, paths: []string{"/", "/beside", "/beside/x"}, methods: []string{"GET", "GET", "POST"},
		serverNames: []string{"", "beside.example.org"}, principals: []string{"", "spiffe://cluster.local/ns/beside/sa/x"},
		headers: make(map[string][]string), queries: make(map[string][]string), claims: make(map[string][]string),
		addresses: []netip.Addr{netip.MustParseAddr("10.9.9.9"), netip.MustParseAddr("192.0.2.77")},
	}
	var all []proto.Message
	for _, typeURL := range []string{envoy.ListenerType, envoy.RouteType} {
		for _, name := range slices.Sorted(maps.Keys(sent[typeURL])) {
			all = append(all, sent[typeURL][name])
		}
	}
	for _, m := range all {
		err := protorange.Range(m.ProtoReflect(), func(p protopath.Values) error {
			if m, ok := p.Index(-1).Value.Interface().(interface{ Interface() proto.Message }); ok {
				w.add(m.Interface())
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return w, nil
}

// add adds the words of one message.
func (w *words) add(m proto.Message) {
	switch m := m.(type) {
	case *routev3.VirtualHost:
		for _, d := range m.GetDomains() {
			w.hosts = append(w.hosts, hostOf(d))
		}
	case *routev3.RouteMatch:
		w.paths = append(w.paths, pathOf(m))
		for _, q := range m.GetQueryParameters() {
			w.queries[q.GetName()] = append(w.queries[q.GetName()], sample(q.GetStringMatch()))
		}
	case *routev3.HeaderMatcher:
		w.addHeader(strings.ToLower(m.GetName()), headerOf(m))
	case *matcher.PathMatcher:
		w.paths = append(w.paths, sample(m.GetPath()))
	case *template.UriTemplateMatchConfig:
		w.paths = append(w.paths, strings.NewReplacer("**", "x/y", "*", "x").Replace(m.GetPathTemplate()))
	case *core.CidrRange:
		if a, err := netip.ParseAddr(m.GetAddressPrefix()); err == nil {
			w.addresses = append(w.addresses, a, a.Next())
		}
	case *rbacv3.Principal_Authenticated:
		w.principals = append(w.principals, sample(m.GetPrincipalName()))
	case *rbacv3.Permission:
		if m.GetRequestedServerName() != nil {
			w.serverNames = append(w.serverNames, sample(m.GetRequestedServerName()))
		}
	case *listenerv3.FilterChainMatch:
		for _, name := range m.GetServerNames() {
			w.serverNames = append(w.serverNames, hostOf(name))
		}
	case *matcher.MetadataMatcher:
		var path []string
		for _, s := range m.GetPath() {
			path = append(path, s.GetKey())
		}
		if len(path) > 1 && path[0] == "payload" {
			name := strings.Join(path[1:], "\x00")
			w.claims[name] = append(w.claims[name], valueOf(m.GetValue()))
		}
	case *jwt.JwtProvider:
		w.issuers = append(w.issuers, m)
	}
}

func (w *words) addHeader(name, value string) {
	switch name {
	case ":method":
		w.methods = append(w.methods, strings.ToUpper(value))
	case ":authority", "host":
		w.hosts = append(w.hosts, value)
	case ":path":
		w.paths = append(w.paths, value)
	case ":scheme":
	default:
		w.headers[name] = append(w.headers[name], value)
	}
}

func hostOf(domain string) string { return strings.ReplaceAll(domain, "*", "any") }

// pathOf returns a path that a match is about.
func pathOf(m *routev3.RouteMatch) string {
	return rooted(m.GetPath() + m.GetPrefix() + m.GetPathSeparatedPrefix() + expression(m.GetSafeRegex().GetRegex()))
}

// rooted returns a path that begins with a slash. Envoy rejects requests with an empty path.
func rooted(path string) string {
	if !strings.HasPrefix(path, "/") {
		return "/" + path
	}
	return path
}

func headerOf(m *routev3.HeaderMatcher) string {
	if s := m.GetStringMatch(); s != nil {
		return sample(s)
	}
	//nolint:staticcheck // gRPC clients know these
	return m.GetExactMatch() + m.GetPrefixMatch() + m.GetSuffixMatch() + expression(m.GetSafeRegexMatch().GetRegex())
}

// sample returns a text that a match holds for, if its expression is a simple one.
func sample(m *matcher.StringMatcher) string {
	return m.GetExact() + m.GetPrefix() + m.GetSuffix() + m.GetContains() + expression(m.GetSafeRegex().GetRegex())
}

func valueOf(m *matcher.ValueMatcher) string {
	switch p := m.GetMatchPattern().(type) {
	case *matcher.ValueMatcher_StringMatch:
		return sample(p.StringMatch)
	case *matcher.ValueMatcher_ListMatch:
		return valueOf(p.ListMatch.GetOneOf())
	case *matcher.ValueMatcher_OrMatch:
		return valueOf(p.OrMatch.GetValueMatchers()[0])
	default:
		return "some"
	}
}

// expression returns a text that a regular expression matches.
func expression(text string) string {
	e, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return text
	}
	return matched(e)
}

func matched(e *syntax.Regexp) (out string) {
	switch e.Op {
	case syntax.OpLiteral:
		return string(e.Rune)
	case syntax.OpCharClass:
		if len(e.Rune) > 0 {
			return string(e.Rune[len(e.Rune)-1:])
		}
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return "a"
	case syntax.OpAlternate:
		return matched(e.Sub[0])
	case syntax.OpCapture, syntax.OpPlus, syntax.OpConcat:
		for _, s := range e.Sub {
			out += matched(s)
		}
	case syntax.OpRepeat:
		return strings.Repeat(matched(e.Sub[0]), e.Min)
	default: // it matches nothing
	}
	return out
}

func pick[E any](r *rand.Rand, list []E) E { return list[r.IntN(len(list))] }

// some returns a value of a random key.
func some(r *rand.Rand, of map[string][]string) (key, value string) {
	keys := make([]string, 0, len(of))
	for key := range of {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	key = pick(r, keys)
	return key, pick(r, of[key])
}
