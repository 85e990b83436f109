// SPDX-License-Identifier: Apache-2.0

package istio_test

import (
	"fmt"
	"strings"
	"testing"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore/istio"
)

// TestPrograms: the regular expressions of an object are bounded together: a proxy
// compiles all of them whenever a route configuration changes.
func TestPrograms(t *testing.T) {
	for count, refused := range map[int]bool{60: false, 80: true} { // 31,000 instructions each
		route := &networking.HTTPRoute{Route: []*networking.HTTPRouteDestination{{Destination: &networking.Destination{Host: "b"}}}}
		for i := range count {
			regex := fmt.Sprintf("/%d", i) + strings.Repeat("a{1000}", 31)
			route.Match = append(route.Match, &networking.HTTPMatchRequest{Uri: &networking.StringMatch{MatchType: &networking.StringMatch_Regex{Regex: regex}}})
		}
		_, violations := found(t, istio.VirtualService, &networking.VirtualService{Hosts: []string{"a.example.com"}, Http: []*networking.HTTPRoute{route}})
		text := strings.Join(violations, "\n")
		if refused != strings.HasPrefix(text, "spec: must have regular expressions with at most 2097152 instructions together, has") {
			t.Errorf("%d expressions: %q", count, text)
		}
	}
}
