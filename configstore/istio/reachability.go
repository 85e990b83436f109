// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1alpha3"
)

// warnUnreachable warns of HTTP routes, and of matches within routes, that no
// request reaches, because earlier ones take them all. It finds routes after a
// route for everything, repeated matches, and paths after a prefix of theirs; it
// takes time linear in the size of the routes.
func warnUnreachable(spec *field, routes []*networking.HTTPRoute) {
	seen := reach{matches: map[string]place{}, prefixes: map[string]place{}}
	for i, route := range routes {
		if route == nil {
			continue
		}
		at := spec.elem("http", i)
		if seen.all != nil {
			at.warn("is never reached: spec.http[%d] takes every request", *seen.all)
			continue
		}
		if route.Delegate != nil {
			// What the delegate's routes leave over goes on to later routes.
			continue
		}
		if len(route.Match) == 0 {
			seen.all = &i
		}
		for n, match := range route.Match {
			if match != nil {
				seen.add(at.elem("match", n), match, place{route: i, match: n})
			}
		}
	}
}

// place is the position of a match.
type place struct{ route, match int }

// reach is what the matches so far take.
type reach struct {
	// all is the route that takes every request.
	all *int
	// matches holds every match, encoded.
	matches map[string]place
	// prefixes holds the paths of which everything is taken.
	prefixes map[string]place
}

func (r *reach) add(at *field, match *networking.HTTPMatchRequest, here place) {
	conditions, onlyPath, ok := pathAndRest(match)
	if !ok {
		return
	}
	if first, ok := r.matches[conditions]; ok {
		at.warn("is never reached: it repeats spec.http[%d].match[%d]", first.route, first.match)
		return
	}
	r.matches[conditions] = here
	if match.IgnoreUriCase {
		return
	}
	prefix, isPrefix := match.GetUri().GetMatchType().(*networking.StringMatch_Prefix)
	path := match.GetUri().GetExact()
	if isPrefix {
		path = prefix.Prefix
	}
	for end := 1; end <= len(path); end++ {
		if first, ok := r.prefixes[path[:end]]; ok {
			at.warn("is never reached: spec.http[%d].match[%d] takes every path with the prefix %q", first.route, first.match, path[:end])
			return
		}
	}
	switch {
	case !onlyPath:
	case match.Uri == nil, isPrefix && path == "/":
		r.all = &here.route
	case isPrefix && path != "":
		r.prefixes[path] = here
	}
}

// pathAndRest returns all conditions of a match, encoded, and whether there is
// none but that on the path. A match with strings that are no UTF-8 cannot be
// encoded.
func pathAndRest(match *networking.HTTPMatchRequest) (conditions string, onlyPath, ok bool) {
	rest := proto.CloneOf(match)
	// These are no conditions.
	rest.Name, rest.StatPrefix = "", ""
	deterministic := proto.MarshalOptions{Deterministic: true}
	all, err := deterministic.Marshal(rest)
	if err != nil {
		return "", false, false
	}
	rest.Uri, rest.IgnoreUriCase = nil, false
	return string(all), proto.Size(rest) == 0, true
}
