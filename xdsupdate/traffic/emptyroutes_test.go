// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"strings"
	"testing"

	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// TestEmptyRoutes: a name that a route configuration of a proxy can have is answered,
// if need be by one without virtual hosts; a wildcard subscription does not cover it.
func TestEmptyRoutes(t *testing.T) {
	st := newState(newIndex(configList{}, newSettings(Options{})), newListWorld())
	const names = "80 65535 unix:///run/x http.80 http.80.10.0.0.1 http.80.unix:///run/x https.443.p.edge.ingress https.443.p.q.edge.ingress.::1 " +
		"a.example.com:80 [::1]:80 0 65536 080 unix:// http. http.0 http.80.x https.443 https.443.p.edge https.443..edge.ingress a.example.com " +
		":80 a|b:80 a.example.com:0 outbound|80||a.example.com mine"
	for r, want := range map[role]string{
		sidecarProxy: "80 65535 unix:///run/x a.example.com:80 [::1]:80",
		router:       "http.80 http.80.10.0.0.1 http.80.unix:///run/x https.443.p.edge.ingress https.443.p.q.edge.ingress.::1",
	} {
		p := &proxy{role: r, namespace: "shop"}
		var got []string
		for name := range strings.FieldsSeq(names) {
			rc := st.resourceSent(p, envoy.RouteType, name)
			if rc == nil {
				continue
			}
			got = append(got, name)
			if err := accepted(p, rc); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if got := strings.Join(got, " "); got != want {
			t.Errorf("role %v is answered for\n%s, want\n%s", r, got, want)
		}
		if all := st.routeNames(p); len(all) > 0 {
			t.Errorf("role %v has %q", r, all)
		}
	}
	grpc := &proxy{role: grpcClient, namespace: "shop"}
	for name := range strings.FieldsSeq(names) {
		if rc := st.resourceSent(grpc, envoy.RouteType, name); rc != nil {
			t.Errorf("a gRPC client is answered for %s: %v", name, rc)
		}
	}
}
