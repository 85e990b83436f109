// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"testing"
	"time"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	storememory "github.com/pilotkit/pilotkit/configstore/memory"
	"github.com/pilotkit/pilotkit/registry"
	registrymemory "github.com/pilotkit/pilotkit/registry/memory"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
)

// TestAgeCountsAtOnce: an update of nothing but the creation time of a VirtualService
// changes which one is used (T22 of the recordings' decisions). Istio notices it with
// the next change only.
func TestAgeCountsAtOnce(t *testing.T) {
	services := registrymemory.New()
	if err := services.SetService(&registry.Service{
		Hostname: "cart.example.com", DefaultAddress: registry.UnspecifiedAddress,
		Ports:      []*registry.Port{{Name: "http", Number: 80, Protocol: registry.ProtocolHTTP}},
		Attributes: registry.ServiceAttributes{Name: "cart", Namespace: "shop"},
	}); err != nil {
		t.Fatal(err)
	}
	store := storememory.NewController(storememory.Make(istio.Schemas()))
	policies := traffic.New(store)
	server := ads.New(services, ads.Options{Providers: []ads.Provider{policies}})
	set := func(name string, age int64) {
		t.Helper()
		if _, err := configstore.Upsert(store, configstore.Config{
			Meta: configstore.Meta{
				GroupVersionKind: istio.VirtualService, Namespace: "shop", Name: name, CreationTimestamp: time.Unix(age, 0),
			},
			Spec: &networking.VirtualService{Hosts: []string{"cart.example.com"}, Http: []*networking.HTTPRoute{{
				DirectResponse: &networking.HTTPDirectResponse{Status: 200},
			}}},
		}); err != nil {
			t.Fatal(err)
		}
		store.Drain()
		if err := server.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	used := func() string {
		return policies.Explain(ads.View{Namespace: "shop"}, traffic.Call{Host: "cart.example.com", Port: 80}).VirtualService
	}
	set("a", 100)
	set("b", 200)
	if got := used(); got != "shop/a" {
		t.Fatalf("VirtualService %q is used, want the older one", got)
	}
	set("a", 300)
	if got := used(); got != "shop/b" {
		t.Errorf("VirtualService %q is used after the other became the younger one", got)
	}
}
