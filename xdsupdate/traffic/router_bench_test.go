// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"fmt"
	"net/http"
	"net/netip"
	"testing"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/internal/test/cputime"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/route"
)

// routedScene has a gateway with a VirtualService of so many rules for each of n hosts, and a policy.
func routedScene(tb testing.TB, n, rules int) *scene {
	tb.Helper()
	configs := objectsOf(tb, `AuthorizationPolicy ingress/deny {"action": "DENY", "rules": [{"to": [{"operation": {"paths": ["/admin*"]}}]}]}`)
	configs.add(istio.Gateway, "ingress/edge", gatewayOf(serverOf(80, "HTTP", "", "*")))
	services := make([]*registry.Service, 0, n)
	for i := range n {
		name := fmt.Sprintf("s%05d", i)
		services = append(services, testService("shop", registry.Hostname(name+".shop.svc.cluster.local"), 80))
		v := &networking.VirtualService{Hosts: []string{name + ".example.com"}, Gateways: []string{"ingress/edge"}}
		for r := range rules {
			v.Http = append(v.Http, toCart(fmt.Sprintf("/p%d", r), nil).Http[0])
			v.Http[r].Route[0].Destination.Host = name
		}
		configs.add(istio.VirtualService, "shop/"+name, v)
	}
	return stage(tb, traffic.Options{}, configs, populate(services...))
}

// BenchmarkRoute decides about requests for the last rule of a host, beside Explain.
func BenchmarkRoute(b *testing.B) {
	for _, n := range []int{1_000, 10_000} {
		for _, rules := range []int{1, 10} {
			s := routedScene(b, n, rules)
			proxy := &registry.Proxy{Namespace: "ingress", Labels: registry.Labels{"app": "edge"}}
			router := s.policies.Router(route.Gateway, proxy)
			host, path := fmt.Sprintf("s%05d.example.com", n/2), fmt.Sprintf("/p%d/x?y=z", rules-1)
			q := route.Request{Port: 80, Authority: host, Path: path, Headers: http.Header{"X-A": {"1"}}, Source: netip.MustParseAddr("10.0.0.1")}
			if d := router.Route(q); d.Destination == nil {
				b.Fatalf("%+v", d)
			}
			b.Run(fmt.Sprintf("services=%d/rules=%d", n, rules), func(b *testing.B) {
				b.ReportAllocs()
				defer cputime.Report(b, "op", 1)()
				for b.Loop() {
					router.Route(q)
				}
			})
			if n == 1_000 {
				view := s.view(edge())
				b.Run(fmt.Sprintf("Explain/services=%d/rules=%d", n, rules), func(b *testing.B) {
					b.ReportAllocs()
					for b.Loop() {
						s.policies.Explain(view, traffic.Call{Host: registry.Hostname(host), Port: 80, Path: path})
					}
				})
			}
			s.close()
		}
	}
}
