// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1alpha3"
)

// warnUnreachable warns of the routes of a VirtualService, and of matches within
// routes, that nothing reaches, because earlier ones take it all. It finds routes
// after a route for everything, repeated matches, and paths after a prefix of
// theirs under the same other conditions. It takes time linear in the size of the
// routes.
func warnUnreachable(spec *field, service *networking.VirtualService) {
	warnUnreachableHTTP(spec, service.Http)
	warnUnreachableL4(spec, "tls", service.Tls, (*networking.TLSRoute).GetMatch)
	warnUnreachableL4(spec, "tcp", service.Tcp, (*networking.TCPRoute).GetMatch)
}

// matchPosition is the position of a match in the list of routes of that name.
type matchPosition struct {
	name         string
	route, match int
}

// reach is the set of requests that the matches so far accept.
type reach struct {
	// all is the route that takes everything, or nil.
	all *matchPosition
	// matches holds every match, encoded.
	matches map[string]matchPosition
	// prefixes holds, by the other conditions, encoded, the prefixes of paths of
	// which everything is taken.
	prefixes map[string]*prefixTree[matchPosition]
}

func newReach() reach {
	return reach{matches: map[string]matchPosition{}, prefixes: map[string]*prefixTree[matchPosition]{}}
}

// afterAll warns of a route if everything is taken already.
func (r *reach) afterAll(at *field) bool {
	if r.all != nil {
		at.warn("is never reached: spec.%s[%d] takes everything", r.all.name, r.all.route)
	}
	return r.all != nil
}

// repeats records a match. It warns if the match was recorded before.
func (r *reach) repeats(at *field, conditions string, here matchPosition) bool {
	first, repeated := r.matches[conditions]
	if repeated {
		at.warn("is never reached: it repeats spec.%s[%d].match[%d]", first.name, first.route, first.match)
	} else {
		r.matches[conditions] = here
	}
	return repeated
}

func warnUnreachableHTTP(spec *field, routes []*networking.HTTPRoute) {
	seen := newReach()
	for i, route := range routes {
		at := spec.elem("http", i)
		// Requests that the routes of a delegate do not match go on to later routes.
		if route == nil || seen.afterAll(at) || route.Delegate != nil {
			continue
		}
		if len(route.Match) == 0 {
			seen.all = &matchPosition{name: "http", route: i}
		}
		for n, match := range route.Match {
			if match != nil {
				seen.addHTTP(at.elem("match", n), match, matchPosition{name: "http", route: i, match: n})
			}
		}
	}
}

func (r *reach) addHTTP(at *field, match *networking.HTTPMatchRequest, here matchPosition) {
	all, rest, ok := pathAndRest(match)
	if !ok || r.repeats(at, all, here) || match.IgnoreUriCase {
		return
	}
	prefix, isPrefix := match.GetUri().GetMatchType().(*networking.StringMatch_Prefix)
	path := match.GetUri().GetExact()
	if isPrefix {
		path = prefix.Prefix
	}
	for _, conditions := range []string{rest, ""} {
		if first, end, ok := r.covers(conditions, path); ok {
			at.warn("is never reached: spec.http[%d].match[%d] takes every path with the prefix %q", first.route, first.match, path[:end])
			return
		}
	}
	switch {
	case rest == "" && (match.Uri == nil || isPrefix && (path == "/" || path == "")):
		r.all = &here
	case isPrefix && path != "":
		r.take(rest, path, here)
	}
}

// covers returns the match that takes all paths with a prefix of the given one
// under the given other conditions, and where that prefix ends.
func (r *reach) covers(conditions, path string) (first matchPosition, end int, ok bool) {
	prefixes := r.prefixes[conditions]
	if prefixes == nil {
		return matchPosition{}, 0, false
	}
	end, first, ok = prefixes.shortest(path)
	return first, end, ok
}

// take records that a match takes all paths with a prefix.
func (r *reach) take(conditions, prefix string, here matchPosition) {
	prefixes := r.prefixes[conditions]
	if prefixes == nil {
		prefixes = &prefixTree[matchPosition]{}
		r.prefixes[conditions] = prefixes
	}
	prefixes.add(prefix, here)
}

// pathAndRest returns all conditions of a match, encoded, and the conditions on anything but the
// path. A match with invalid UTF-8 cannot be encoded.
func pathAndRest(match *networking.HTTPMatchRequest) (all, rest string, ok bool) {
	conditions := proto.CloneOf(match)
	// These are no conditions.
	conditions.Name, conditions.StatPrefix = "", ""
	all, ok = encode(conditions)
	conditions.Uri, conditions.IgnoreUriCase = nil, false
	rest, _ = encode(conditions)
	return all, rest, ok
}

func encode(m proto.Message) (encoded string, ok bool) {
	all, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	return string(all), err == nil
}

// l4Route is a route of connections, l4Match one of its matches.
type (
	l4Route interface {
		comparable
		proto.Message
	}
	l4Match interface {
		comparable
		proto.Message
	}
)

func warnUnreachableL4[R l4Route, M l4Match](spec *field, name string, routes []R, matches func(R) []M) {
	var nullRoute R
	var nullMatch M
	seen := newReach()
	for i, route := range routes {
		at := spec.elem(name, i)
		if route == nullRoute || seen.afterAll(at) {
			continue
		}
		if len(matches(route)) == 0 {
			seen.all = &matchPosition{name: name, route: i}
		}
		for n, match := range matches(route) {
			if match == nullMatch {
				continue
			}
			if conditions, ok := encode(match); ok {
				seen.repeats(at.elem("match", n), conditions, matchPosition{name: name, route: i, match: n})
			}
		}
	}
}
