// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"github.com/google/go-cmp/cmp"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
)

// seen returns the ports and hosts of the clusters that a sidecar of a namespace has.
func (s *scene) seen(namespace string) string {
	s.t.Helper()
	var out []string
	for _, name := range s.ask(in("sidecar", namespace), envoy.ClusterType).names {
		if port, _, host, ok := envoy.ParseSubsetClusterName(name); ok {
			out = append(out, fmt.Sprintf("%s:%d", strings.TrimSuffix(string(host), ".example.com"), port))
		}
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

func TestScope(t *testing.T) {
	hidden := testService("billing", "hidden.example.com", 80)
	hidden.Attributes.ExportTo = []registry.Visibility{"."}
	services := populate(
		testService("shop", "cart.example.com", 80),
		testService("billing", "cart.example.com", 80, 90),
		testService("billing", "ledger.example.com", 80, 90),
		hidden,
	)
	route := func(host string, port uint32) *networking.HTTPRoute {
		return &networking.HTTPRoute{Route: []*networking.HTTPRouteDestination{{
			Destination: &networking.Destination{Host: host, Port: &networking.PortSelector{Number: port}},
		}}}
	}
	for _, tc := range []struct {
		name   string
		egress []*networking.IstioEgressListener
		want   string
	}{
		{"without a Sidecar everything visible", nil, "cart:80 ledger:80 ledger:90"},
		{
			"one namespace",
			[]*networking.IstioEgressListener{{Hosts: []string{"billing/*"}}},
			"cart:80 cart:90 ledger:80 ledger:90",
		},
		{"nothing", []*networking.IstioEgressListener{{Hosts: []string{"~/*"}}}, ""},
		{
			"excluded",
			[]*networking.IstioEgressListener{{Hosts: []string{"*/*", "~billing/ledger.example.com"}}},
			"cart:80 ledger:90", // by the VirtualService
		},
		{
			"a port",
			[]*networking.IstioEgressListener{{
				Port: &networking.SidecarPort{Number: 90, Protocol: "HTTP"}, Hosts: []string{"billing/*"},
			}},
			"cart:90 ledger:90",
		},
		{ // The VirtualService adds the ledger with the port of the listener.
			"another port",
			[]*networking.IstioEgressListener{{
				Port: &networking.SidecarPort{Number: 80, Protocol: "HTTP"}, Hosts: []string{"*/cart.example.com"},
			}},
			"cart:80 ledger:80",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var configs configList
			configs.add(istio.VirtualService, "shop/cart", &networking.VirtualService{
				Hosts: []string{"cart.example.com"}, Http: []*networking.HTTPRoute{route("ledger.example.com", 90)},
			})
			if tc.egress != nil {
				configs.add(istio.Sidecar, "shop/default", &networking.Sidecar{Egress: tc.egress})
			}
			if diff := cmp.Diff(tc.want, stage(t, traffic.Options{}, configs, services).seen("shop")); diff != "" {
				t.Errorf("services (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSidecarOf(t *testing.T) {
	var configs configList
	selecting := func(labels map[string]string) *networking.Sidecar {
		return &networking.Sidecar{WorkloadSelector: &networking.WorkloadSelector{Labels: labels}}
	}
	configs.add(istio.Sidecar, "istio-system/root", &networking.Sidecar{})
	configs.add(istio.Sidecar, "istio-system/empty", selecting(nil))
	configs.add(istio.Sidecar, "shop/default", &networking.Sidecar{})
	configs.add(istio.Sidecar, "shop/app", selecting(map[string]string{"app": "cart"}))
	configs.add(istio.Sidecar, "third/default", &networking.Sidecar{})
	configs.add(istio.Sidecar, "third/empty", selecting(nil))
	s := stage(t, traffic.Options{}, configs, nil)
	for _, tc := range []struct {
		client *core.Node
		want   string
	}{
		{in("sidecar", "shop", "app=cart"), "shop/app"},
		{in("sidecar", "shop"), "shop/default"},
		{in("sidecar", "other"), "istio-system/root"},
		{in("sidecar", "third"), "third/empty"}, // as if it had labels
		{in("router", "shop"), ""},
	} {
		if got := s.explain(tc.client, traffic.Call{Host: cart, Port: 80}).Sidecar; got != tc.want {
			t.Errorf("Sidecar of %s: %q, want %q", tc.client, got, tc.want)
		}
	}
}

func TestVirtualServicesFor(t *testing.T) {
	var configs configList
	for _, v := range []struct {
		key      string
		exportTo []string
	}{
		{"billing/public", nil}, {"billing/named", []string{"shop"}}, {"shop/private", []string{"."}}, {"billing/private", []string{"."}},
	} {
		configs.add(istio.VirtualService, v.key, &networking.VirtualService{Hosts: []string{cart}, ExportTo: v.exportTo, Http: toCart("/", nil).GetHttp()})
	}
	s := stage(t, traffic.Options{}, configs, populate(testService("shop", cart, 80)))
	var got []string
	for _, v := range s.explain(in("sidecar", "shop"), traffic.Call{Host: cart, Port: 80, Path: "/"}).VirtualServices {
		got = append(got, v.Name)
	}
	if diff := cmp.Diff([]string{"shop/private", "billing/public", "billing/named"}, got); diff != "" {
		t.Errorf("VirtualServices (-want +got):\n%s", diff)
	}
}

// TestScopeOfListenersThatDisagree: of the services of one name that listeners import
// from several namespaces, the first is in the scope, with its own ports.
func TestScopeOfListenersThatDisagree(t *testing.T) {
	var configs configList
	configs.add(istio.Sidecar, "apps/s", &networking.Sidecar{Egress: []*networking.IstioEgressListener{
		{Port: &networking.SidecarPort{Number: 80, Protocol: "HTTP", Name: "http"}, Hosts: []string{"shop/*"}},
		{Hosts: []string{"billing/*"}},
	}})
	services := populate(testService("shop", "a.example.com", 80), testService("billing", "a.example.com", 8080))
	if got, want := stage(t, traffic.Options{}, configs, services).seen("apps"), "a:80"; got != want {
		t.Errorf("%q are seen, want %q", got, want)
	}
}

// TestImportedTarget: a gRPC client that sees a service only as a destination calls it by the routes
// of the VirtualServices for its host, on port 80 as sidecars, and not without.
func TestImportedTarget(t *testing.T) {
	const listener, cluster = "ledger.example.com:80", "outbound|80||ledger.example.com"
	leading, about := `VirtualService apps/leading {"hosts": ["other.example.com"], "http": [{"route": [{"destination": {"host": "ledger.example.com"}}]}]}`,
		func(port string) string {
			return `VirtualService apps/about {"hosts": ["ledger.example.com"], "http": [{"name": "about", "match": [{"port": ` + port + `}], "route": [{"destination": {"host": "cart.example.com", "port": {"number": 80}}}]}]}`
		}
	s := stage(t, traffic.Options{}, objectsOf(t, `Sidecar apps/s {"egress": [{"hosts": ["./*"]}]}`), populate(
		testService("billing", "ledger.example.com", 80, 90), testService("shop", "cart.example.com", 80),
	))
	n := in("grpc", "apps")
	listeners := s.follow(n, envoy.ListenerType, listener, "ledger.example.com:90")
	routes := s.follow(n, envoy.RouteType, cluster, "outbound|90||ledger.example.com")
	for _, tc := range []struct {
		name    string
		objects []string
		call    string // where it leads; empty: nowhere
	}{
		{"no VirtualService", nil, ""},
		{"none for the host", []string{leading}, ""},
		{"one without routes on the port", []string{about("90")}, ""},
		{"one", []string{about("80")}, "outbound|80||cart.example.com"},
	} {
		s.change(objectsOf(t, tc.objects...))
		rc, _ := routes.has()[cluster].(*routev3.RouteConfiguration)
		if got := clusterOf(rc, "ledger.example.com"); got != tc.call || got != "" && listeners.has()[listener] == nil || len(listeners.has()) > 1 {
			t.Errorf("%s: calls lead to %q with the listeners %v, want %q", tc.name, got, listeners.has(), tc.call)
		}
		out := s.explain(n, traffic.Call{Host: "ledger.example.com", Port: 80})
		if led := len(out.Destinations) > 0 && out.Destinations[0].Cluster == tc.call; led != (tc.call != "") {
			t.Errorf("%s: explained as %+v", tc.name, out)
		}
		listeners.check()
		routes.check()
	}
}
