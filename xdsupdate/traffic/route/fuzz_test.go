// SPDX-License-Identifier: Apache-2.0

package route_test

import (
	"net/http"
	"strings"
	"testing"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	rbacv3 "github.com/envoyproxy/go-control-plane/envoy/config/rbac/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	httprbac "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/rbac/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	matcher "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	meshconfig "istio.io/api/mesh/v1alpha1"

	"github.com/pilotkit/pilotkit/internal/test/routesim"
	"github.com/pilotkit/pilotkit/internal/xdsbuild"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/route"
)

// adminDenied denies requests below /admin.
func adminDenied() *hcm.HttpFilter {
	path := &matcher.PathMatcher{Rule: &matcher.PathMatcher_Path{Path: &matcher.StringMatcher{MatchPattern: &matcher.StringMatcher_Prefix{Prefix: "/admin"}}}}
	return xdsbuild.HTTPFilter("envoy.filters.http.rbac", &httprbac.RBAC{Rules: &rbacv3.RBAC{
		Action: rbacv3.RBAC_DENY,
		Policies: map[string]*rbacv3.Policy{"ns[shop]-policy[admin]-rule[0]": {
			Permissions: []*rbacv3.Permission{{Rule: &rbacv3.Permission_UrlPath{UrlPath: path}}},
			Principals:  []*rbacv3.Principal{{Identifier: &rbacv3.Principal_Any{Any: true}}},
		}},
	}})
}

// hostile has a gateway's filter chain for each normalization of paths, and routes for one host.
func hostile(tb testing.TB) (chains []*listenerv3.FilterChain, routes *route.Table) {
	tb.Helper()
	for n := range meshconfig.MeshConfig_ProxyPathNormalization_NormalizationType_name {
		mesh := &meshconfig.MeshConfig{PathNormalization: &meshconfig.MeshConfig_ProxyPathNormalization{
			Normalization: meshconfig.MeshConfig_ProxyPathNormalization_NormalizationType(n),
		}}
		chains = append(chains, xdsbuild.FilterChain(nil, nil,
			xdsbuild.GatewayConnectionManager("http", registry.ProtocolHTTP, mesh, xdsbuild.HTTPOptions{Filters: []*hcm.HttpFilter{adminDenied()}})))
	}
	to := (&xdsbuild.RouteScope{}).DefaultRoute("outbound|80||shop", nil)
	return chains, route.NewTable(route.Made{Message: &routev3.RouteConfiguration{
		IgnorePortInHostMatching: true,
		VirtualHosts:             []*routev3.VirtualHost{{Name: "shop", Domains: []string{"shop.example.com", "*.shop.example.com"}, Routes: []*routev3.Route{to}}},
	}})
}

// FuzzRoute: no request that the simulation of Envoy refuses goes to a destination, and none for a
// foreign host.
func FuzzRoute(f *testing.F) {
	for _, path := range []string{"/admin", "//admin", "/x/../admin", "/x/..;/admin", "/%61dmin", "/%2fadmin", `/\admin`, "/ADMIN", "/x%2f..%2fadmin", "/%2e/admin", "/x?/admin", "*"} {
		for _, host := range []string{"shop.example.com", "SHOP.example.com.", "a.shop.example.com:80", ".shop.example.com", "shop.example.com:80:80", "[shop.example.com]"} {
			f.Add(path, host, "x")
		}
	}
	chains, table := hostile(f)
	var listeners []*route.Listener
	var gates []*routesim.Gate
	for _, c := range chains {
		gate, err := routesim.NewGate(c)
		if err != nil {
			f.Fatal(err)
		}
		gates = append(gates, gate)
		listeners = append(listeners, route.NewListener(route.Made{Message: &listenerv3.Listener{FilterChains: []*listenerv3.FilterChain{c}}}))
	}
	f.Fuzz(func(t *testing.T, path, host, value string) {
		if path == "" {
			return // it stands for "/"
		}
		for i, l := range listeners {
			d := l.Route(route.Request{Path: path, Authority: host, Headers: http.Header{"X-A": {value, host}}}, func(string) *route.Table { return table })
			if d.Outcome != route.Forwarded {
				continue
			}
			admitted, err := gates[i].Decide(routesim.Call{Request: &routesim.Request{Method: "GET", Path: path, Authority: host}})
			if err != nil || !admitted.Admitted {
				t.Errorf("chain %d forwards %q for %q as %q: %v, %v", i, path, host, d.Path, admitted, err)
			}
			if !strings.Contains(strings.ToLower(host), "shop.example.com") {
				t.Errorf("the host %q is taken for the shop", host)
			}
		}
	})
}
