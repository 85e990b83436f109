// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/registry"
)

// TestKeptRoutes: after any change, route configurations that are made of kept
// routes are those that are made from scratch.
func TestKeptRoutes(t *testing.T) {
	kept, histories := 0, uint64(30)
	if testing.Short() {
		histories = 6
	}
	for seed := range histories {
		h := newRoutesHistory(seed)
		for step := range 40 {
			h.change()
			for _, p := range h.routers {
				for name := range h.now.routerOf(p).routes {
					got := h.now.routesSent(p, name)
					want := newState(h.now.index, h.now.world).routesSent(p, name)
					if !proto.Equal(got, want) {
						t.Fatalf("seed %d, step %d, %s:\n%v\nfrom scratch:\n%v", seed, step, name, got, want)
					}
				}
			}
			for v := range h.now.kept.of.All() {
				if !slices.Contains(h.now.virtualServices, v) {
					t.Fatalf("seed %d, step %d: the routes of a VirtualService that is gone, or another, are kept", seed, step)
				}
			}
			kept = max(kept, h.now.kept.of.Len())
		}
	}
	if kept == 0 {
		t.Error("nothing was kept")
	}
}

// routesHistory changes what routes of gateways depend on, at random.
type routesHistory struct {
	*rand.Rand
	now      *state
	services []*registry.Service
	routers  []*proxy
}

func newRoutesHistory(seed uint64) *routesHistory {
	var configs configList
	configs.add(istio.Gateway, "ingress/a", gatewayOf(
		serverOf(80, "HTTP", "", "*"), serverOf(8080, "HTTP", "redirect", "a.com"), serverOf(443, "HTTPS", "c", "a.com", "b.com")))
	h := &routesHistory{Rand: rand.New(rand.NewPCG(seed, 7))}
	for _, namespace := range []string{"ingress", "shop"} { // they differ in one thing each
		for _, labels := range []registry.Labels{{"app": "edge"}, {"app": "edge", "v": "1"}} {
			router := edge()
			router.namespace, router.labels = namespace, labels
			h.routers = append(h.routers, router)
		}
	}
	h.now = newState(newIndex(configs, newSettings(Options{})), newListWorld())
	return h
}

func (h *routesHistory) pick(list ...string) string { return list[h.IntN(len(list))] }

// change changes one thing, as a push does.
func (h *routesHistory) change() {
	d := &difference{before: h.now}
	x, w := h.now.index, h.now.world
	switch h.IntN(4) {
	case 0:
		host := registry.Hostname(h.pick("cart", "catalog") + ".shop.svc.cluster.local")
		h.services = slices.DeleteFunc(h.services, func(s *registry.Service) bool { return s.Hostname == host })
		if h.IntN(3) > 0 {
			h.services = append(h.services, testService("shop", host, [][]uint32{{80}, {81}, {80, 81}}[h.IntN(3)]...))
		}
		w = newListWorld(slices.Clone(h.services)...)
		d.services = []registry.Hostname{host}
	case 1:
		x = h.replace(d, istio.DestinationRule, h.pick("r", "s"), h.rule())
	default:
		x = h.replace(d, istio.VirtualService, h.pick("v", "w", "d"), nil)
	}
	d.after = h.now.next(x, w, d)
	h.now = d.after
}

// replace sets or deletes an object.
func (h *routesHistory) replace(d *difference, kind configstore.GroupVersionKind, name string, spec proto.Message) *index {
	key := configstore.ConfigKey{Kind: kind, Namespace: "shop", Name: name}
	before, _ := h.now.objects.Get(key)
	var after object
	if h.IntN(4) > 0 {
		if spec == nil {
			spec = h.virtualService(name)
		}
		var list configList
		list.add(kind, "shop/"+name, spec)
		after = newObject(list[0], h.now.settings)
	}
	if before == (object{}) && after == (object{}) {
		return h.now.index
	}
	d.objects = []objectChange{{key, before, after}}
	return h.now.with(key, before, after)
}

func (h *routesHistory) rule() *networking.DestinationRule {
	r := &networking.DestinationRule{Host: h.pick("cart", "catalog", "*.shop.svc.cluster.local"), ExportTo: [][]string{nil, {"."}}[h.IntN(2)]}
	if h.IntN(2) == 0 {
		r.TrafficPolicy = &networking.TrafficPolicy{LoadBalancer: &networking.LoadBalancerSettings{
			LbPolicy: &networking.LoadBalancerSettings_ConsistentHash{ConsistentHash: &networking.LoadBalancerSettings_ConsistentHashLB{
				HashKey: &networking.LoadBalancerSettings_ConsistentHashLB_HttpHeaderName{HttpHeaderName: h.pick("x", "y")},
			}},
		}}
	}
	return r
}

// virtualService is a delegate if it is called "d", which others include.
func (h *routesHistory) virtualService(name string) *networking.VirtualService {
	v := toCart("/"+h.pick("a", "b"), []string{"ingress/a"}, h.pick("a.com", "b.com", "*.com"))
	v.Http[0].Route[0].Destination.Host = h.pick("cart", "catalog")
	v.Http[0].Match[0].SourceLabels = []map[string]string{nil, {"v": "1"}}[h.IntN(2)]
	v.Http[0].Match[0].SourceNamespace = h.pick("", "", "shop")
	switch {
	case name == "d":
		v.Hosts, v.Gateways = nil, nil
	case h.IntN(2) == 0:
		v.Http = append(v.Http, &networking.HTTPRoute{Name: fmt.Sprint(h.IntN(3)), Delegate: &networking.Delegate{Name: "d"}})
	}
	return v
}

// TestDelegateUpdate: those that include a delegate lead to where it leads now.
func TestDelegateUpdate(t *testing.T) {
	h := newRoutesHistory(1)
	to := func(host string) *networking.VirtualService {
		return &networking.VirtualService{Http: []*networking.HTTPRoute{{
			Route: []*networking.HTTPRouteDestination{{Destination: &networking.Destination{Host: host}}},
		}}}
	}
	var configs configList
	configs.add(istio.VirtualService, "shop/d", to("cart"))
	configs.add(istio.VirtualService, "shop/root", &networking.VirtualService{
		Hosts: []string{"a.com"}, Gateways: []string{"ingress/a"},
		Http: []*networking.HTTPRoute{{Delegate: &networking.Delegate{Name: "d"}}},
	})
	x := newIndex(configs, h.now.settings)
	var changed configList
	changed.add(istio.VirtualService, "shop/d", to("catalog"))
	before, _ := x.objects.Get(configs[0].Key())
	x = x.with(configs[0].Key(), before, newObject(changed[0], h.now.settings))
	if old, now := x.finder.leadingTo("cart.shop.svc.cluster.local"), x.finder.leadingTo("catalog.shop.svc.cluster.local"); len(old) != 0 || len(now) != 1 {
		t.Errorf("%d lead to where the delegate led, %d to where it leads", len(old), len(now))
	}
}

// TestKeptPlacesAreBounded: of a VirtualService on ever more routers, the routes of the
// last ones are kept.
func TestKeptPlacesAreBounded(t *testing.T) {
	var kept keptRoutes
	rules := &gatewayRules{of: &virtualService{}}
	for port := range uint32(3 * maxKeptPlaces) {
		at := keptPlace{place: place{port: port}}
		kept = kept.with(at, rules)
		if list, _ := kept.of.Get(rules.of); len(list) > maxKeptPlaces {
			t.Fatalf("routes of %d places are kept, want %d at most", len(list), maxKeptPlaces)
		}
		if kept.get(rules.of, at) != rules {
			t.Fatal("the last routes are not kept")
		}
	}
}
