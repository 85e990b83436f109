// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
)

// TestEmptyRoutes: a name that a route configuration of a proxy can have is answered,
// if need be by one without virtual hosts; a wildcard subscription does not cover it.
func TestEmptyRoutes(t *testing.T) {
	s := newScene(t, traffic.Options{})
	const names = "80 65535 unix:///run/x http.80 http.80.10.0.0.1 http.80.unix:///run/x https.443.p.edge.ingress https.443.p.q.edge.ingress.::1 " +
		"a.example.com:80 [::1]:80 0 65536 080 unix:// http. http.0 http.80.x https.443 https.443.p.edge https.443..edge.ingress a.example.com " +
		":80 a|b:80 a.example.com:0 outbound|80||a.example.com mine"
	for kind, want := range map[string]string{
		"sidecar": "80 65535 unix:///run/x a.example.com:80 [::1]:80",
		"router":  "http.80 http.80.10.0.0.1 http.80.unix:///run/x https.443.p.edge.ingress https.443.p.q.edge.ingress.::1",
		"grpc":    "", // they know that there is none, and fail the calls
	} {
		got := s.ask(in(kind, "shop"), envoy.RouteType, strings.Fields(names)...)
		all := slices.Sorted(strings.FieldsSeq(want))
		if diff := cmp.Diff(all, got.names); diff != "" {
			t.Errorf("a %s is answered for (-want +got):\n%s", kind, diff)
		}
		if all := s.ask(in(kind, "shop"), envoy.RouteType).names; len(all) > 0 {
			t.Errorf("a %s has %q", kind, all)
		}
	}
}
