// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/registry"
)

// configList is a configReader of a list of "namespace/name" and specs.
type configList []*configstore.Config

func (l configList) List(kind configstore.GroupVersionKind, _ string) []*configstore.Config {
	var out []*configstore.Config
	for _, c := range l {
		if c.GroupVersionKind == kind {
			out = append(out, c)
		}
	}
	return out
}

func (l *configList) add(kind configstore.GroupVersionKind, key string, spec proto.Message) {
	namespace, name, _ := strings.Cut(key, "/")
	*l = append(*l, &configstore.Config{Meta: configstore.Meta{
		GroupVersionKind: kind, Namespace: namespace, Name: name, CreationTimestamp: time.Unix(int64(len(*l)), 0),
	}, Spec: spec})
}

func testService(namespace string, host registry.Hostname, ports ...uint32) *registry.Service {
	s := &registry.Service{Hostname: host, Attributes: registry.ServiceAttributes{Namespace: namespace}}
	for _, p := range ports {
		s.Ports = append(s.Ports, &registry.Port{Number: p, Name: fmt.Sprint("http-", p), Protocol: registry.ProtocolHTTP})
	}
	return s
}

func describe(services []*service) string {
	var b strings.Builder
	for _, s := range services {
		fmt.Fprintf(&b, "%s/%s", s.namespace, s.host)
		for _, p := range s.ports {
			fmt.Fprintf(&b, " %d", p.Number)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func TestScope(t *testing.T) {
	hidden := testService("billing", "hidden.example.com", 80)
	hidden.Attributes.ExportTo = []registry.Visibility{"."}
	w := newListWorld(
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
		{"without a Sidecar everything visible", nil, "shop/cart.example.com 80\nbilling/ledger.example.com 80 90\n"},
		{
			"one namespace",
			[]*networking.IstioEgressListener{{Hosts: []string{"billing/*"}}},
			"billing/cart.example.com 80 90\nbilling/ledger.example.com 80 90\n",
		},
		{"nothing", []*networking.IstioEgressListener{{Hosts: []string{"~/*"}}}, ""},
		{
			"excluded",
			[]*networking.IstioEgressListener{{Hosts: []string{"*/*", "~billing/ledger.example.com"}}},
			"shop/cart.example.com 80\nbilling/ledger.example.com 90\n", // by the VirtualService
		},
		{
			"a port",
			[]*networking.IstioEgressListener{{
				Port: &networking.SidecarPort{Number: 90, Protocol: "HTTP"}, Hosts: []string{"billing/*"},
			}},
			"billing/cart.example.com 90\nbilling/ledger.example.com 90\n",
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
			st := newState(newIndex(configs, newSettings(Options{})), w)
			got := describe(st.scopeOf(&proxy{namespace: "shop"}).sorted)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("scope (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSidecarOf(t *testing.T) {
	var configs configList
	selecting := func(labels map[string]string) *networking.Sidecar {
		return &networking.Sidecar{WorkloadSelector: &networking.WorkloadSelector{Labels: labels}}
	}
	configs.add(istio.Sidecar, "istio-system/root", selecting(nil))
	configs.add(istio.Sidecar, "shop/default", selecting(nil))
	configs.add(istio.Sidecar, "shop/app", selecting(map[string]string{"app": "cart"}))
	x := newIndex(configs, newSettings(Options{}))
	for _, tc := range []struct {
		proxy *proxy
		want  string
	}{
		{&proxy{namespace: "shop", labels: registry.Labels{"app": "cart"}}, "shop/app"},
		{&proxy{namespace: "shop"}, "shop/default"},
		{&proxy{namespace: "other"}, "istio-system/root"},
	} {
		if got := x.sidecarOf(tc.proxy).String(); got != tc.want {
			t.Errorf("Sidecar of %+v: %s, want %s", tc.proxy, got, tc.want)
		}
	}
	if s := x.sidecarOf(&proxy{role: router, namespace: "shop"}); s != nil {
		t.Errorf("Sidecar of a router: %s", s)
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
		configs.add(istio.VirtualService, v.key, &networking.VirtualService{Hosts: []string{"cart"}, ExportTo: v.exportTo})
	}
	x := newIndex(configs, newSettings(Options{}))
	var got []string
	for _, v := range x.virtualServicesFor(meshGateway, "shop") {
		got = append(got, v.String())
	}
	if diff := cmp.Diff([]string{"shop/private", "billing/named", "billing/public"}, got); diff != "" {
		t.Errorf("VirtualServices (-want +got):\n%s", diff)
	}
}

func TestMostSpecific(t *testing.T) {
	hosts := map[registry.Hostname]int{"a.b.c": 0, "*.b.c": 0, "*.c": 0, "*": 0, "*-x.b.c": 0}
	for name, want := range map[registry.Hostname]registry.Hostname{
		"a.b.c": "a.b.c", "z.b.c": "*.b.c", "z-x.b.c": "*-x.b.c", "y.c": "*.c", "q": "*", "*.b.c": "*.b.c", "*.z.b.c": "*.b.c",
	} {
		if got, ok := mostSpecific(hosts, name); !ok || got != want {
			t.Errorf("mostSpecific(%s) = %s, %t; want %s", name, got, ok, want)
		}
	}
	if got, ok := mostSpecific(map[registry.Hostname]int{"*.b.c": 0}, "b.c"); ok {
		t.Errorf("*.b.c must not cover b.c, got %s", got)
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
	w := newListWorld(testService("shop", "a.example.com", 80), testService("billing", "a.example.com", 8080))
	st := newState(newIndex(configs, newSettings(Options{})), w)
	if got, want := describe(st.scopeOf(&proxy{namespace: "apps"}).sorted), "shop/a.example.com 80\n"; got != want {
		t.Errorf("the scope has %q, want %q", got, want)
	}
}
