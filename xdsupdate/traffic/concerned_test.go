// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// TestTwoGatewaysOfOnePort: a VirtualService concerns the routers of all its Gateways,
// also if they give a route configuration the same name.
func TestTwoGatewaysOfOnePort(t *testing.T) {
	var configs configList
	for _, app := range []string{"edge", "inner"} {
		g := gatewayOf(serverOf(80, "HTTP", "", "*"))
		g.Selector = map[string]string{"app": app}
		configs.add(istio.Gateway, "ingress/"+app, g)
	}
	bound := []string{"ingress/edge", "ingress/inner"}
	configs.add(istio.VirtualService, "shop/v", toCart("/a", bound, "a.com"))
	x, w := newIndex(configs, newSettings(Options{})), newListWorld()
	var changed configList
	changed.add(istio.VirtualService, "shop/v", toCart("/b", bound, "a.com"))
	key := changed[0].Key()
	before, _ := x.objects.Get(key)
	after := newObject(changed[0], x.settings)
	d := &difference{before: newState(x, w), targets: &targets{}, objects: []objectChange{{key, before, after}}}
	d.after = d.before.next(x.with(key, before, after), w, d)
	changes := newConcerned(d).changes()
	for _, app := range []string{"edge", "inner"} {
		v := ads.View{Namespace: "ingress", Policy: group{router: true, labels: "app=" + app}}
		if !named(changes, v, resourceKey{envoy.RouteType, "http.80"}) {
			t.Errorf("the routes of %s are not concerned", app)
		}
	}
	other := ads.View{Namespace: "ingress", Policy: group{router: true, labels: "app=other"}}
	if named(changes, other, resourceKey{envoy.RouteType, "http.80"}) {
		t.Error("the routes of a router that no Gateway selects are concerned")
	}
}

// TestIdentitiesConcernClusters: a cluster with the identities of its endpoints is
// concerned by other endpoints, though their assignment is not in it.
func TestIdentitiesConcernClusters(t *testing.T) {
	svc := testService("shop", "cart.example.com", 80)
	of := func(account string) *listWorld {
		w := newListWorld(svc)
		w.index.UpdateServiceEndpoints(xdsupdate.ShardKey{}, svc.Hostname, "shop", []*registry.Endpoint{{
			Addresses: []string{"10.0.0.1"}, EndpointPort: 80, ServicePort: 80, ServicePortName: svc.Ports[0].Name,
			Shared: &registry.EndpointAttributes{TLSMode: "istio", ServiceAccount: account},
		}})
		return w
	}
	var configs configList
	configs.addRule(t, "shop/cart", `{"host":"cart.example.com","trafficPolicy":{"tls":{"mode":"ISTIO_MUTUAL"}}}`)
	x, p := newIndex(configs, newSettings(Options{})), &proxy{namespace: "shop"}
	const name = "outbound|80||cart.example.com"
	key, v := resourceKey{envoy.ClusterType, name}, ads.View{Namespace: "shop"}
	for _, tc := range []struct {
		after   string
		differs bool
	}{{"spiffe://x/ns/shop/sa/b", true}, {"spiffe://x/ns/shop/sa/a", false}} {
		d := &difference{before: newState(x, of("spiffe://x/ns/shop/sa/a")), targets: &targets{}, endpoints: []registry.Hostname{svc.Hostname}}
		d.after = d.before.next(x, of(tc.after), d)
		if differs := !proto.Equal(d.before.cluster(p, name), d.after.cluster(p, name)); differs != tc.differs {
			t.Errorf("the cluster differs: %t, want %t", differs, tc.differs)
		}
		if got := named(newConcerned(d).changes(), v, key); got != tc.differs {
			t.Errorf("the cluster is concerned: %t, want %t", got, tc.differs)
		}
	}
}

// TestEndpointsConcernDNSClusters: the endpoints of a DNS service are in its clusters.
func TestEndpointsConcernDNSClusters(t *testing.T) {
	svc := testService("shop", "cart.example.com", 80)
	svc.Resolution = registry.DNSLB
	of := func(address string) *listWorld {
		w := newListWorld(svc)
		w.place(svc, address)
		return w
	}
	x := newIndex(configList{}, newSettings(Options{}))
	d := &difference{before: newState(x, of("a.example.com")), targets: &targets{}, endpoints: []registry.Hostname{svc.Hostname}}
	d.after = d.before.next(x, of("b.example.com"), d)
	if !named(newConcerned(d).changes(), ads.View{Namespace: "shop"}, resourceKey{envoy.ClusterType, "outbound|80||cart.example.com"}) {
		t.Error("the cluster is not concerned")
	}
}

// TestChangeConcernsRoutes: what a change of one object makes of routes differs, and is
// concerned, also if another object has the routes.
func TestChangeConcernsRoutes(t *testing.T) {
	const hash = `{"host":"cart.shop.svc.cluster.local","trafficPolicy":{"loadBalancer":{"consistentHash":{"httpHeaderName":"x"}}}}`
	const hashOfSubset = `{"host":"cart.shop.svc.cluster.local","subsets":[{"name":"v1",` +
		`"trafficPolicy":{"loadBalancer":{"consistentHash":{"httpHeaderName":"x"}}}}]}`
	const hashOfPort = `{"host":"cart.shop.svc.cluster.local","trafficPolicy":{"portLevelSettings":[{"port":{"number":80},` +
		`"loadBalancer":{"consistentHash":{"httpHeaderName":"x"}}}]}}`
	var hashed, hashedSubset, hashedPort, plain, delegate, other configList
	hashed.addRule(t, "shop/cart", hash)
	hashedSubset.addRule(t, "shop/cart", hashOfSubset)
	hashedPort.addRule(t, "shop/cart", hashOfPort)
	plain.addRule(t, "shop/cart", `{"host":"cart.shop.svc.cluster.local"}`)
	to := func(path string) *networking.VirtualService {
		v := toCart(path, nil)
		v.Hosts = nil
		return v
	}
	delegate.add(istio.VirtualService, "shop/d", to("/a"))
	other.add(istio.VirtualService, "shop/d", to("/b"))
	for _, tc := range []struct {
		name          string
		before, after configList
		proxy         proxy
		view          ads.View
		routes        string
	}{
		{"a hash, default routes", plain, hashed, proxy{namespace: "shop"}, ads.View{Namespace: "shop"}, "80"},
		{"no hash any more", hashed, plain, proxy{namespace: "shop"}, ads.View{Namespace: "shop"}, "80"},
		{"a hash, routes of a gateway", plain, hashed, *edge(), ads.View{Namespace: "ingress", Policy: group{router: true, labels: "app=edge"}}, "http.80"},
		{"a hash of a subset, routes of a gateway", plain, hashedSubset, *edge(), ads.View{Namespace: "ingress", Policy: group{router: true, labels: "app=edge"}}, "http.80"},
		{"a hash of a port, routes of a gateway", plain, hashedPort, *edge(), ads.View{Namespace: "ingress", Policy: group{router: true, labels: "app=edge"}}, "http.80"},
		{"a hash of a port, default routes", plain, hashedPort, proxy{namespace: "shop"}, ads.View{Namespace: "shop"}, "80"},
		{"a delegate", delegate, other, *edge(), ads.View{Namespace: "ingress", Policy: group{router: true, labels: "app=edge"}}, "http.80"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			configs := slices.Clone(tc.before)
			configs.add(istio.Gateway, "ingress/edge", gatewayOf(serverOf(80, "HTTP", "", "*")))
			root := toCart("/", []string{"ingress/edge"}, "a.com")
			root.Http[0].Route[0].Destination.Subset = "v1"
			root.Http = append([]*networking.HTTPRoute{{Delegate: &networking.Delegate{Name: "d"}}}, root.Http...)
			configs.add(istio.VirtualService, "shop/root", root)
			x, w := newIndex(configs, newSettings(Options{})), newListWorld(testService("shop", "cart.shop.svc.cluster.local", 80))
			key := tc.before[0].Key()
			before, _ := x.objects.Get(key)
			after := newObject(tc.after[0], x.settings)
			d := &difference{before: newState(x, w), targets: &targets{}, objects: []objectChange{{key, before, after}}}
			if d.before.routesSent(&tc.proxy, tc.routes) == nil { // it also lets the routes be kept
				t.Fatal("there are no routes")
			}
			d.after = d.before.next(x.with(key, before, after), w, d)
			if proto.Equal(d.before.routesSent(&tc.proxy, tc.routes), d.after.routesSent(&tc.proxy, tc.routes)) {
				t.Error("the routes do not differ")
			}
			if !named(newConcerned(d).changes(), tc.view, resourceKey{envoy.RouteType, tc.routes}) {
				t.Error("the routes are not concerned")
			}
		})
	}
}

// TestConcernedRoutes: a change concerns just those route configurations of a sidecar
// that differ, also those of ports that it does not name.
func TestConcernedRoutes(t *testing.T) {
	const listeners = `{"egress":[{"port":{"number":15000,"protocol":"http_proxy","name":"p"},"bind":"127.0.0.1","hosts":["*/*"]},` +
		`{"port":{"number":9,"protocol":"HTTP","name":"u"},"bind":"unix:///tmp/all","hosts":["*/*"]},{"hosts":["*/*"]}]}`
	cart := testService("shop", "cart.example.com", 8080)
	forHost := func(host string) object {
		var list configList
		list.add(istio.VirtualService, "shop/v", toCart("/", nil, host, "ghost.example.com"))
		return newObject(list[0], newSettings(Options{}))
	}
	for _, tc := range []struct {
		name    string
		sidecar bool
		// host is that of a VirtualService, which is there before; comes: it is not.
		host    string
		comes   bool
		service bool // the service comes
		want    []string
	}{
		{"a service", false, "", false, true, []string{"8080"}},
		{"a service that a VirtualService names", false, "cart.example.com", false, true, []string{"80", "8080"}},
		{"a service that a wildcard covers", false, "*.example.com", false, true, []string{"8080"}},
		{"a service, with listeners of all ports", true, "", false, true, []string{"15000", "8080", "unix:///tmp/all"}},
		{"a VirtualService for no service", false, "other.example.com", true, false, []string{"80"}},
		{"a VirtualService for no service, with listeners of all ports", true, "other.example.com", true, false, []string{"15000", "80", "unix:///tmp/all"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var configs configList
			if tc.sidecar {
				configs.add(istio.Sidecar, "shop/default", spec(t, listeners, &networking.Sidecar{}))
			}
			x, p := newIndex(configs, newSettings(Options{})), &proxy{namespace: "shop"}
			d := &difference{targets: &targets{}}
			after, key := x, configstore.ConfigKey{Kind: istio.VirtualService, Namespace: "shop", Name: "v"}
			if tc.host != "" {
				v := forHost(tc.host)
				if after = x.with(key, object{}, v); tc.comes {
					d.objects = []objectChange{{key, object{}, v}}
				} else {
					x = after
				}
			}
			before, now := newListWorld(), newListWorld()
			if tc.service {
				d.services, now = []registry.Hostname{cart.Hostname}, newListWorld(cart)
			}
			d.before = newState(x, before)
			d.after = d.before.next(after, now, d)
			changes := newConcerned(d).changes()
			var differ, concerned []string
			for _, name := range []string{"15000", "80", "8080", "9000", "unix:///tmp/all"} {
				if !proto.Equal(d.before.routesSent(p, name), d.after.routesSent(p, name)) {
					differ = append(differ, name)
				}
				if named(changes, ads.View{Namespace: "shop"}, resourceKey{envoy.RouteType, name}) {
					concerned = append(concerned, name)
				}
			}
			if !slices.Equal(differ, tc.want) || !slices.Equal(concerned, tc.want) {
				t.Errorf("%q differ, %q are concerned, want %q", differ, concerned, tc.want)
			}
		})
	}
}

// TestTranslatedPortsAreConcerned: a VirtualService, and a service behind AUTO_PASSTHROUGH,
// concern the listeners and routes on the port that a router listens on for that of the
// Gateway.
func TestTranslatedPortsAreConcerned(t *testing.T) {
	var configs configList
	configs.add(istio.Gateway, "ingress/edge", gatewayOf(
		serverOf(80, "HTTP", "", "*"), serverOf(443, "TLS", "pass", "*"), serverOf(15443, "TLS", "auto", "*.local")))
	configs.add(istio.VirtualService, "shop/v", toCart("/a", []string{"ingress/edge"}, "a.com"))
	x, w := newIndex(configs, newSettings(Options{})), cartWorld()
	key := configs[1].Key()
	before, _ := x.objects.Get(key)
	of := &targets{byAddress: map[string]map[registry.Hostname]targetPorts{"10.9.0.3": {"edge": {80: 8080, 443: 8443, 15443: 16443}}}}
	view := ads.View{Namespace: "ingress", Policy: group{router: true, labels: "app=edge"}}
	d := &difference{before: newState(x, w), targets: of, objects: []objectChange{{key, before, object{}}}, services: []registry.Hostname{"cart.shop.svc.cluster.local"}}
	d.after = d.before.next(x.with(key, before, object{}), w, d)
	changes := newConcerned(d).changes()
	for _, key := range []resourceKey{
		{envoy.RouteType, "http.8080"},
		{envoy.ListenerType, "0.0.0.0_8443"},
		{envoy.ListenerType, "0.0.0.0_16443"},
		{envoy.RouteType, "http.80"},
		{envoy.ListenerType, "0.0.0.0_443"},
		{envoy.ListenerType, "0.0.0.0_15443"},
	} {
		if !named(changes, view, key) {
			t.Errorf("%s is not concerned", key.name)
		}
	}
}
