// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"slices"
	"strings"

	networking "istio.io/api/networking/v1alpha3"
)

// jwtClaimPrefix starts the keys of header matches that match claims instead.
const jwtClaimPrefix = "@request.auth.claims"

// isClaim reports whether the key of a header match stands for a claim:
// "@request.auth.claims.a.b" or "@request.auth.claims[a][b]".
func isClaim(key string) bool {
	if len(key) <= len(jwtClaimPrefix) || !strings.EqualFold(key[:len(jwtClaimPrefix)], jwtClaimPrefix) {
		return false
	}
	claims := key[len(jwtClaimPrefix):]
	return claims[0] == '.' && len(claims) > 1 || isIndexed(claims, "")
}

// hasEmptyName reports whether one of the names of a claim is empty: no token has it, and Envoy refuses the
// whole route configuration.
func hasEmptyName(claim string) bool {
	names := claim[len(jwtClaimPrefix):]
	if dotted, ok := strings.CutPrefix(names, "."); ok {
		return slices.Contains(strings.Split(dotted, "."), "")
	}
	return slices.Contains(strings.Split(names[1:len(names)-1], "]["), "")
}

// checkHeaderMatches checks the matches of a map from names of headers, pseudo
// headers and JWT claims. Claims are known at gateways only.
func checkHeaderMatches(at *field, name string, matches map[string]*networking.StringMatch, scope routeScope) {
	for place, match := range entries(at, name, matches) {
		header := place.key
		switch claim := isClaim(header); {
		case claim && hasEmptyName(header):
			place.refuse("key has a claim of an empty name")
		case claim && !scope.gateways:
			place.refuse("key must not be a JWT claim for the gateway mesh, only for other gateways")
		case !claim && !isPseudoHeader(header):
			if problem := headerNameProblem(header); problem != "" {
				place.refuse("key %s", problem)
			}
		}
		if name == "withoutHeaders" && match.GetRegex() == "*" {
			// This is how Istio writes presence here, though "*" is no expression.
			continue
		}
		checkValueMatch(place, match)
	}
}

// isPseudoHeader knows the pseudo headers of HTTP/2.
func isPseudoHeader(name string) bool {
	switch name {
	case ":method", ":scheme", ":authority", ":path", ":status":
		return true
	default:
		return false
	}
}
