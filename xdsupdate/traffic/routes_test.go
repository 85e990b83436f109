// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"github.com/google/go-cmp/cmp"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
)

// routesText has a line for each route: its virtual host, match and cluster.
func routesText(c *routev3.RouteConfiguration) string {
	var b strings.Builder
	for _, h := range c.GetVirtualHosts() {
		for _, r := range h.GetRoutes() {
			m := r.GetMatch()
			fmt.Fprintf(&b, "%s %s%s%s", h.GetName(), m.GetPrefix(), m.GetPath(), m.GetSafeRegex().GetRegex())
			for _, x := range m.GetHeaders() {
				fmt.Fprintf(&b, " %s=%s%s", x.GetName(), x.GetStringMatch().GetExact(), x.GetStringMatch().GetPrefix())
			}
			fmt.Fprintf(&b, " -> %s\n", r.GetRoute().GetCluster())
		}
	}
	return b.String()
}

// The rows of the recordings' decisions that differ from what was recorded.
func TestOutboundRoutes(t *testing.T) {
	const forward = `"route": [{"destination": {"host": "cart"}}]`
	cart, orders := "cart.shop.svc.cluster.local", "orders.shop.svc.cluster.local"
	for _, tc := range []struct {
		name     string
		services []*registry.Service
		virtual  []string
		route    string
		want     string
	}{
		{
			"T2: a destination without port is the only port of its service",
			[]*registry.Service{testService("shop", registry.Hostname(cart), 80), testService("shop", registry.Hostname(orders), 8080)},
			[]string{"shop/orders", `{"hosts": ["orders"], "http": [{` + forward + `}]}`},
			"8080", orders + ":8080 / -> outbound|80||" + cart + "\n",
		},
		{
			"T3: a service is not on the ports of another, unknown hosts are",
			[]*registry.Service{testService("shop", registry.Hostname(cart), 80), testService("shop", registry.Hostname(orders), 80, 8080)},
			[]string{"shop/both", `{"hosts": ["cart", "orders", "ghost.example.com"], "http": [{` + forward + `}]}`},
			"8080", orders + ":8080 / -> outbound|80||" + cart + "\n" + "ghost.example.com:8080 / -> outbound|80||" + cart + "\n",
		},
		{
			"T4: host names are compared without case",
			[]*registry.Service{testService("shop", "Mixed.Example.com", 80)},
			[]string{"shop/mixed", `{"hosts": ["MIXED.example.com"], "http": [{"match": [{"uri": {"prefix": "/a"}}], "route": [{"destination": {"host": "mixed.EXAMPLE.com"}}]}]}`},
			"80", "mixed.example.com:80 /a -> outbound|80||Mixed.Example.com\n",
		},
		{
			"T16: a delegate inherits the source namespace, and presence fits presence",
			[]*registry.Service{testService("shop", registry.Hostname(cart), 80)},
			[]string{
				"shop/cart", `{"hosts": ["cart"], "http": [{"match": [{"uri": {"prefix": "/n"}, "sourceNamespace": "shop", "headers": {"a": {}}}], "delegate": {"name": "part"}}]}`,
				"shop/part", `{"http": [{"match": [{"headers": {"a": {}, "b": {"exact": "1"}}}], ` + forward + `}]}`,
			},
			"80", cart + ":80 /n a= b=1 -> outbound|80||" + cart + "\n",
		},
		{
			"the default route if a VirtualService says nothing to the proxy, or an older one does not",
			[]*registry.Service{testService("shop", registry.Hostname(cart), 80), testService("shop", registry.Hostname(orders), 80)},
			[]string{
				"shop/a", `{"hosts": ["cart"], "http": [{"match": [{"sourceLabels": {"app": "other"}}], "redirect": {"uri": "/"}}]}`,
				"shop/b", `{"hosts": ["cart"], "http": [{"match": [{"uri": {"exact": "/b"}}], ` + forward + `}]}`,
				"shop/c", `{"hosts": ["orders"], "http": [{"match": [{"sourceNamespace": "other"}], "redirect": {"uri": "/"}}]}`,
			},
			"80", cart + ":80 /b -> outbound|80||" + cart + "\n" + orders + ":80 / -> outbound|80||" + orders + "\n",
		},
		{
			"T88: the younger VirtualService for a wildcard, if the older one says nothing to the proxy",
			[]*registry.Service{testService("shop", "a.x.com", 80)},
			[]string{
				"shop/a", `{"hosts": ["*.x.com"], "http": [{"match": [{"port": 8080}], "redirect": {"uri": "/"}}]}`,
				"shop/b", `{"hosts": ["*.x.com"], "http": [{"match": [{"uri": {"exact": "/b"}}], ` + forward + `}]}`,
			},
			"80", "a.x.com:80 /b -> outbound|80||" + cart + "\n",
		},
		{
			"the longest wildcard, unless there is an exact host",
			[]*registry.Service{testService("shop", "a.x.com", 80), testService("shop", "b.x.com", 80), testService("shop", "c.b.x.com", 80)},
			[]string{
				"shop/1", `{"hosts": ["*.com"], "http": [{"match": [{"uri": {"prefix": "/1"}}], "route": [{"destination": {"host": "a.x.com"}}]}]}`,
				"shop/2", `{"hosts": ["*.b.x.com"], "http": [{"match": [{"uri": {"prefix": "/2"}}], "route": [{"destination": {"host": "a.x.com"}}]}]}`,
				"shop/3", `{"hosts": ["a.x.com"], "http": [{"match": [{"uri": {"prefix": "/3"}}], "route": [{"destination": {"host": "a.x.com"}}]}]}`,
			},
			"80", "b.x.com:80 /1 -> outbound|80||a.x.com\nc.b.x.com:80 /2 -> outbound|80||a.x.com\na.x.com:80 /3 -> outbound|80||a.x.com\n",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var objects []string
			for i := 0; i < len(tc.virtual); i += 2 {
				objects = append(objects, "VirtualService "+tc.virtual[i]+" "+tc.virtual[i+1])
			}
			s := stage(t, traffic.Options{}, objectsOf(t, objects...), populate(tc.services...))
			c := s.routes(in("sidecar", "shop"), tc.route)
			last := len(c.GetVirtualHosts()) - 1
			if c.GetVirtualHosts()[last].GetName() != "allow_any" {
				t.Fatal(c)
			}
			c.VirtualHosts = c.VirtualHosts[:last]
			if diff := cmp.Diff(tc.want, routesText(c)); diff != "" {
				t.Errorf("routes (-want +got):\n%s", diff)
			}
		})
	}
}

// T12: all addresses of a service are domains, and one that two services share is
// the first one's.
func TestAddressesAreDomains(t *testing.T) {
	address := func(s *registry.Service, a string) *registry.Service {
		s.DefaultAddress = a
		return s
	}
	s := stage(t, traffic.Options{}, nil, populate(
		address(testService("shop", "One.com", 80), "10.0.0.1"), address(testService("shop", "one.com", 80), "2001:db8::1"),
		address(testService("shop", "two.com", 80), "10.0.0.1"), address(testService("shop", "wide.com", 80), "10.0.0.0/8"),
	))
	want := map[string][]string{
		"one.com:80":  {"one.com", "one.com.", "10.0.0.1", "[2001:db8::1]"},
		"two.com:80":  {"two.com", "two.com."},
		"wide.com:80": {"wide.com", "wide.com."},
	}
	for _, h := range s.routes(in("sidecar", "shop"), "80").GetVirtualHosts()[:3] {
		if diff := cmp.Diff(want[h.GetName()], h.GetDomains()); diff != "" {
			t.Errorf("domains of %s (-want +got):\n%s", h.GetName(), diff)
		}
	}
	l := s.listener(in("grpc", "shop"), "one.com:80")
	if a := l.GetAddress().GetSocketAddress().GetAddress(); a != "10.0.0.1" {
		t.Errorf("address of the listener: %q", a)
	}
}

func TestShortNames(t *testing.T) {
	for _, tc := range []struct{ host, namespace, want string }{
		{"cart.shop.svc.cluster.local", "shop", "cart cart.shop cart.shop.svc"},
		{"cart.shop.svc.cluster.local", "other", "cart.shop cart.shop.svc"},
		{"a.b.shop.svc.cluster.local", "shop", "a.b.shop a.b.shop.svc"},
		{"cart.example.com", "shop", ""},
	} {
		s := stage(t, traffic.Options{}, nil, populate(testService("shop", registry.Hostname(tc.host), 80)))
		short := slices.DeleteFunc(s.routes(in("sidecar", tc.namespace), "80").GetVirtualHosts()[0].GetDomains(), func(d string) bool {
			return strings.TrimSuffix(d, ".") == tc.host
		})
		if got := strings.Join(short, " "); got != tc.want {
			t.Errorf("short names of %s in %s: %q, want %q", tc.host, tc.namespace, got, tc.want)
		}
	}
	// A short name is no domain of a service if another service has it as its name.
	s := stage(t, traffic.Options{}, nil, populate(
		testService("shop", "cart.shop.svc.cluster.local", 80), testService("shop", "cart.shop", 80),
	))
	for _, h := range s.routes(in("sidecar", "shop"), "80").GetVirtualHosts() {
		if h.GetName() != "cart.shop:80" && slices.Contains(h.GetDomains(), "cart.shop") {
			t.Errorf("%s has the name of another service: %v", h.GetName(), h.GetDomains())
		}
	}
	// The same holds for the short names of an alias, also if the other service is a later one.
	s = stage(t, traffic.Options{}, nil, populate(
		testService("shop", "a.com", 80), aliasFor("shop", "zed.shop.svc.cluster.local", "a.com"), testService("shop", "zed", 80),
	))
	for _, h := range s.routes(in("sidecar", "shop"), "80").GetVirtualHosts() {
		if want := h.GetName() == "zed:80"; slices.Contains(h.GetDomains(), "zed") != want {
			t.Errorf("%s has the domain zed: %v, want %v", h.GetName(), !want, want)
		}
	}
}

// T50, T59: the targets that a gRPC client can call a service by.
func TestGRPCTargets(t *testing.T) {
	grpc := testService("shop", "multi.shop.svc.cluster.local", 8080, 9000)
	grpc.Ports[1].Protocol = registry.ProtocolGRPC
	s := stage(t, traffic.Options{}, nil, populate(
		grpc, testService("shop", "one.shop.svc.cluster.local", 7000), testService("shop", "web.com", 80, 81),
	))
	for _, tc := range []struct{ namespace, target, want string }{
		{"shop", "multi.shop.svc.cluster.local:9000", "outbound|9000||multi.shop.svc.cluster.local"},
		{"shop", "MULTI.shop.svc.cluster.local:9000", "outbound|9000||multi.shop.svc.cluster.local"},
		{"shop", "multi:8080", "outbound|8080||multi.shop.svc.cluster.local"},
		{"shop", "multi.shop:8080", "outbound|8080||multi.shop.svc.cluster.local"},
		{"shop", "multi.shop.svc:8080", "outbound|8080||multi.shop.svc.cluster.local"},
		{"shop", "multi", "outbound|9000||multi.shop.svc.cluster.local"},
		{"shop", "one", "outbound|7000||one.shop.svc.cluster.local"},
		{"shop", "one.shop.svc.cluster.local", "outbound|7000||one.shop.svc.cluster.local"},
		{"shop", "web.com", ""},
		{"shop", "web.com:82", ""},
		{"shop", "nowhere:80", ""},
		{"other", "multi:8080", ""},
		{"other", "multi.shop:8080", ""},
	} {
		n := in("grpc", tc.namespace)
		l := s.listener(n, tc.target)
		if tc.want == "" {
			if l != nil {
				t.Errorf("%s in %s: %v", tc.target, tc.namespace, l)
			}
			continue
		}
		if l.GetName() != tc.target {
			t.Errorf("%s: %v", tc.target, l)
		}
		c := s.routes(n, tc.want)
		if len(c.GetVirtualHosts()) != 1 || !slices.Contains(c.GetVirtualHosts()[0].GetDomains(), strings.ToLower(tc.target)) {
			t.Errorf("%s: no such domain in %v", tc.target, c)
		}
	}
}
