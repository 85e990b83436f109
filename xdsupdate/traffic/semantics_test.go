// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"

	"github.com/pilotkit/pilotkit/internal/test/routesim"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
)

// elementsOf are the elements of a path, of which the last one may be empty.
func elementsOf(path string) []string { return strings.Split(strings.TrimPrefix(path, "/"), "/") }

// coversElements reports whether a prefix matches a path as Kubernetes says: element by
// element, without a slash at the end of the prefix.
func coversElements(prefix, path string) bool {
	prefix = strings.TrimSuffix(prefix, "/")
	if prefix == "" {
		return true
	}
	want, got := elementsOf(prefix), elementsOf(path)
	return len(want) <= len(got) && slices.Equal(want, got[:len(want)])
}

// semanticRules is a VirtualService that answers a prefix of paths with 200, at a Gateway
// and in the mesh.
func semanticRules(semantics, prefix string, more ...string) string {
	return fmt.Sprintf(`
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: edge, namespace: ingress}
spec:
  selector: {app: edge}
  servers:
  - {port: {number: 80, name: http, protocol: HTTP}, hosts: ["*"]}
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: rules, namespace: ingress, annotations: {internal.istio.io/route-semantics: %q}}
spec:
  hosts: [cart.shop.svc.cluster.local]
  gateways: [edge, mesh]
  http:
  - match: [{uri: {prefix: %q}%s}]
    route: [{destination: {host: cart.shop.svc.cluster.local, port: {number: 80}}}]
`, semantics, prefix, strings.Join(more, ""))
}

func semanticScene(t *testing.T) *scene {
	t.Helper()
	return stage(t, traffic.Options{}, nil, populate(testService("shop", "cart.shop.svc.cluster.local", 80)))
}

func isRouted(o routesim.Outcome) bool { return len(o.Targets) > 0 }

// TestWholeElements: prefixes of VirtualServices that stand for Ingresses and HTTPRoutes
// match whole elements at routers, sidecars and gRPC clients, and those of others any path
// that begins with them.
func TestWholeElements(t *testing.T) {
	s := semanticScene(t)
	paths := []string{"/", "/a", "/a/", "/a/b", "/a/b/", "/a/b/c", "/ab", "/a/bc", "/b", "/a//b", "/A/b"}
	for _, semantics := range []string{"ingress", "gateway", "", "other"} {
		whole := semantics == "ingress" || semantics == "gateway"
		for _, prefix := range []string{"/", "/a", "/a/", "/a/b", "/a/b/", "/ab", "/x"} {
			for _, fold := range []bool{false, true} {
				more := ""
				if fold {
					more = ", ignoreUriCase: true"
				}
				s.apply(semanticRules(semantics, prefix, more))
				s.applied()
				name := "outbound|80||cart.shop.svc.cluster.local"
				router, sidecar, grpc := s.routes(edge(), "http.80"), s.routes(in("sidecar", "shop"), "80"), s.routes(in("grpc", "shop"), name)
				for _, path := range paths {
					p, q := prefix, path
					if fold {
						p, q = strings.ToLower(p), strings.ToLower(q)
					}
					want := strings.HasPrefix(q, p)
					if whole {
						want = coversElements(p, q)
					}
					r := routesim.Request{Port: 80, Method: "POST", Authority: "cart.shop.svc.cluster.local", Scheme: "http", Path: path}
					what := fmt.Sprintf("%q: %s, ignoring case %t, at %s", semantics, prefix, fold, path)
					for client, config := range map[string]*routev3.RouteConfiguration{"router": router, "sidecar": sidecar} {
						if got := routesim.Envoy(config, r); isRouted(got) != want {
							t.Errorf("%s: %s routes %t, want %t", what, client, !want, want)
						}
					}
					r.Authority += ":80" // The name of the target.
					for _, client := range []routesim.GRPCClient{routesim.Go, routesim.Core, routesim.JS} {
						if got, err := client.Call(grpc, r); err != nil || isRouted(got) != want {
							t.Errorf("%s: gRPC client %v routes %t, %v; want %t", what, client, isRouted(got), err, want)
						}
					}
					call := traffic.Call{Host: "cart.shop.svc.cluster.local", Port: 80, Path: path, Method: "POST"}
					if got := s.explain(in("sidecar", "shop"), call); (got.Rule != "") != want {
						t.Errorf("%s: explained by rule %q, want one %t", what, got.Rule, want)
					}
				}
			}
		}
	}
}

// TestWholeElementsAreReplaced: what replaces a prefix of whole elements is joined to the rest
// by one slash, in rewrites and redirects.
func TestWholeElementsAreReplaced(t *testing.T) {
	s := semanticScene(t)
	for _, tc := range []struct{ prefix, by, path, want string }{
		{"/a", "/new", "/a", "/new"},
		{"/a", "/new", "/a/", "/new/"},
		{"/a", "/new", "/a/b", "/new/b"},
		{"/a", "/new/", "/a/b", "/new/b"},
		{"/a/", "/new/", "/a/b", "/new/b"},
		{"/a/", "/new", "/a", "/new"},
		{"/a", "/", "/a", "/"},
		{"/a", "/", "/a/", "/"},
		{"/a", "/", "/a/b", "/b"},
		{"/a.b", "/", "/a.b/c", "/c"},
		{"/", "/new", "/b", "/new/b"},
		{"/", "/new/", "/b", "/new/b"},
		{"/", "/", "/b", "/b"},
	} {
		r := routesim.Request{Port: 80, Method: "GET", Authority: "cart.shop.svc.cluster.local", Scheme: "http", Path: tc.path}
		text := semanticRules("gateway", tc.prefix)
		s.apply(text + fmt.Sprintf("    rewrite: {uri: %q}\n", tc.by))
		s.applied()
		if got := routesim.Envoy(s.routes(edge(), "http.80"), r).Path; got != tc.want {
			t.Errorf("%s, rewritten to %s: %s becomes %s, want %s", tc.prefix, tc.by, tc.path, got, tc.want)
		}
		lines := strings.Split(strings.TrimSpace(text), "\n")
		s.apply(strings.Join(lines[:len(lines)-1], "\n") + fmt.Sprintf("\n    redirect: {prefixRewrite: %q}\n", tc.by))
		s.applied()
		want := "http://cart.shop.svc.cluster.local" + tc.want
		if got := routesim.Envoy(s.routes(edge(), "http.80"), r).Location; got != want {
			t.Errorf("%s, redirected to %s: %s leads to %s, want %s", tc.prefix, tc.by, tc.path, got, want)
		}
	}
}

// TestChangedSemantics: clients get routes of other semantics, of an object in which nothing
// but the annotation has changed.
func TestChangedSemantics(t *testing.T) {
	s := semanticScene(t)
	r := routesim.Request{Port: 80, Method: "GET", Authority: "cart.shop.svc.cluster.local", Scheme: "http", Path: "/ab"}
	for _, semantics := range []string{"", "ingress", "", "gateway", "other"} {
		s.apply(semanticRules(semantics, "/a"))
		s.applied()
		want := semantics == "" || semantics == "other"
		if got := isRouted(routesim.Envoy(s.routes(edge(), "http.80"), r)); got != want {
			t.Errorf("%q: /ab is routed %t, want %t", semantics, got, want)
		}
	}
}
