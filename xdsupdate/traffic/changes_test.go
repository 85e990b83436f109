// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"github.com/google/go-cmp/cmp"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
)

// change is a change of a control plane, and what it means for a client that is subscribed
// to names of a type.
type change struct {
	name     string
	before   []string // objects
	services *population
	change   func(s *scene)
	client   *core.Node
	typeURL  string
	names    []string
	sent     []string // nil: nothing
}

// run makes the change. The client is sent just what is wanted, and has then what a client
// that comes later is sent.
func (c *change) run(t *testing.T) {
	t.Helper()
	s := stage(t, traffic.Options{}, objectsOf(t, c.before...), c.services)
	f := s.follow(c.client, c.typeURL, c.names...)
	c.change(s)
	s.applied()
	if diff := cmp.Diff(c.sent, f.sent()); diff != "" {
		t.Errorf("sent (-want +got):\n%s", diff)
	}
	f.check()
}

// objects returns a change that stores objects.
func objects(texts ...string) func(s *scene) {
	return func(s *scene) { s.change(objectsOf(s.t, texts...)) }
}

// gatewayFor is a Gateway of HTTP for routers with a label.
func gatewayFor(app string) string {
	return fmt.Sprintf(`Gateway ingress/%s {"selector": {"app": %[1]q}, "servers": [{"port": {"number": 80, "name": "http", "protocol": "HTTP"}, "hosts": ["*"]}]}`, app)
}

func cartRule(more string) string {
	return fmt.Sprintf(`DestinationRule shop/cart {"host": %q%s}`, cart, more)
}

// TestChangesOfRoutes: a change sends the route configurations that it changes, also those
// that another object has, and no others.
func TestChangesOfRoutes(t *testing.T) {
	const (
		hash     = `"loadBalancer": {"consistentHash": {"httpHeaderName": "x"}}`
		ofAll    = `, "trafficPolicy": {` + hash + `}`
		ofSubset = `, "subsets": [{"name": "v1", "trafficPolicy": {` + hash + `}}]`
		ofPort   = `, "trafficPolicy": {"portLevelSettings": [{"port": {"number": 80}, ` + hash + `}]}`
		root     = `VirtualService shop/root {"hosts": ["a.com"], "gateways": ["ingress/edge"], "http": [
			{"delegate": {"name": "d"}}, {"route": [{"destination": {"host": "cart", "subset": "v1"}}]}]}`
	)
	bound := func(path string) string {
		return fmt.Sprintf(`VirtualService shop/v {"hosts": ["a.com"], "gateways": ["ingress/edge", "ingress/inner"], "http": [
			{"match": [{"uri": {"prefix": %q}}], "route": [{"destination": {"host": "cart"}}]}]}`, path)
	}
	delegate := func(host string) string {
		return fmt.Sprintf(`VirtualService shop/d {"http": [{"match": [{"uri": {"exact": "/d"}}], "route": [{"destination": {"host": %q}}]}]}`, host)
	}
	services := func() *population {
		return populate(testService("shop", cart, 80), testService("shop", "catalog.shop.svc.cluster.local", 90))
	}
	edges := []string{gatewayFor("edge"), gatewayFor("inner")}
	for _, c := range []change{
		{name: "a VirtualService of two Gateways, one router", before: append(edges, bound("/a")), change: objects(bound("/b")), client: edge(), sent: []string{"http.80"}},
		{name: "the other router", before: append(edges, bound("/a")), change: objects(bound("/b")), client: in("router", "ingress", "app=inner"), sent: []string{"http.80"}},
		{name: "a router that no Gateway selects", before: append(edges, bound("/a")), change: objects(bound("/b")), client: in("router", "ingress", "app=other")},
		{name: "a hash, default routes", before: []string{cartRule("")}, change: objects(cartRule(ofAll)), client: in("sidecar", "shop"), sent: []string{"80"}},
		{name: "no hash any more", before: []string{cartRule(ofAll)}, change: objects(cartRule("")), client: in("sidecar", "shop"), sent: []string{"80"}},
		{name: "a hash of a port, default routes", before: []string{cartRule("")}, change: objects(cartRule(ofPort)), client: in("sidecar", "shop"), sent: []string{"80"}},
		{name: "a hash, routes of a gateway", before: append(edges, cartRule(""), root), change: objects(cartRule(ofAll)), client: edge(), sent: []string{"http.80"}},
		{name: "a hash of a subset, routes of a gateway", before: append(edges, cartRule(""), root), change: objects(cartRule(ofSubset)), client: edge(), sent: []string{"http.80"}},
		{name: "a hash of a port, routes of a gateway", before: append(edges, cartRule(""), root), change: objects(cartRule(ofPort)), client: edge(), sent: []string{"http.80"}},
		{name: "a policy without a hash", before: append(edges, cartRule(""), root), change: objects(cartRule(`, "trafficPolicy": {"outlierDetection": {"consecutive5xxErrors": 1}}`)), client: edge()},
		{name: "a delegate", before: append(edges, delegate("cart"), root), change: objects(delegate("catalog")), client: edge(), sent: []string{"http.80"}},
		{
			name: "the ports of a service that a delegate leads to since it changed", before: append(edges, delegate("cart"), root),
			change: func(s *scene) {
				s.change(objectsOf(t, delegate("catalog")))
				s.must(s.kubernetes.SetService(testService("shop", "catalog.shop.svc.cluster.local", 8080)))
			},
			client: edge(), sent: []string{"http.80", "http.80"},
		},
		{
			name: "another service than that which a delegate leads to", before: append(edges, delegate("cart"), root),
			change: func(s *scene) {
				s.change(objectsOf(t, delegate("catalog")))
				s.must(s.kubernetes.SetService(testService("other", "ledger.other.svc.cluster.local", 8080)))
			},
			client: edge(), sent: []string{"http.80"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.services, c.typeURL, c.names = services(), envoy.RouteType, []string{"80", "http.80"}
			c.run(t)
		})
	}
}

// TestChangesOfForwarding: only the listeners with its routes are built again for a change of TCP or TLS
// routes, however many listeners a router has.
func TestChangesOfForwarding(t *testing.T) {
	servers := map[string]string{
		"tcp": `{"port": {"number": 9000, "name": "p", "protocol": "TCP"}, "hosts": ["*"]}`,
		"tls": `{"port": {"number": 9443, "name": "p", "protocol": "TLS"}, "hosts": ["*"], "tls": {"mode": "PASSTHROUGH"}}`,
	}
	routes := func(kind, host string) string {
		return fmt.Sprintf(`VirtualService shop/%s {"hosts": ["a.com"], "gateways": ["ingress/%[1]s"], %[1]q: [
			{"match": [{"port": %d%s}], "route": [{"destination": {"host": %q}}]}]}`,
			kind, map[string]int{"tcp": 9000, "tls": 9443}[kind], map[string]string{"tls": `, "sniHosts": ["a.com"]`}[kind], host)
	}
	var before []string
	for kind, server := range servers {
		before = append(before, fmt.Sprintf(`Gateway ingress/%s {"selector": {"app": "edge"}, "servers": [%s]}`, kind, server), routes(kind, "cart"))
	}
	for kind, want := range map[string]string{"tcp": "0.0.0.0_9000", "tls": "0.0.0.0_9443"} {
		s := stage(t, traffic.Options{}, objectsOf(t, before...), populate(testService("shop", cart, 80), testService("shop", "catalog.shop.svc.cluster.local", 80)))
		f, view := s.follow(edge(), envoy.ListenerType), s.view(edge())
		s.change(objectsOf(t, routes(kind, "catalog")))
		s.applied()
		changes := s.provided.changes
		for name := range f.has() {
			concerned := changes.Everything != nil && changes.Everything(view, envoy.ListenerType) || slices.ContainsFunc(changes.Names, func(n ads.ChangedName) bool {
				return n.TypeURL == envoy.ListenerType && n.Name == name && (n.In == nil || n.In(view))
			})
			if concerned != (name == want) {
				t.Errorf("%s: listener %s is concerned: %t", kind, name, concerned)
			}
		}
		if diff := cmp.Diff([]string{want}, f.sent()); diff != "" {
			t.Errorf("%s: sent (-want +got):\n%s", kind, diff)
		}
	}
}

// TestChangesOfPorts: what comes is in the routes of the ports that it is about, and in
// those of listeners of Sidecars that have all ports.
func TestChangesOfPorts(t *testing.T) {
	const listeners = `Sidecar shop/default {"egress": [{"port": {"number": 15000, "protocol": "http_proxy", "name": "p"}, "bind": "127.0.0.1", "hosts": ["*/*"]},
		{"port": {"number": 9, "protocol": "HTTP", "name": "u"}, "bind": "unix:///tmp/all", "hosts": ["*/*"]}, {"hosts": ["*/*"]}]}`
	virtualService := func(host string) string {
		return fmt.Sprintf(`VirtualService shop/v {"hosts": [%q, "ghost.example.com"], "http": [{"route": [{"destination": {"host": "cart"}}]}]}`, host)
	}
	service := func(s *scene) { s.must(s.kubernetes.SetService(testService("shop", "cart.example.com", 8080))) }
	for _, c := range []change{
		{name: "a service", change: service, sent: []string{"8080"}},
		{name: "a service that a VirtualService names", before: []string{virtualService("cart.example.com")}, change: service, sent: []string{"80", "8080"}},
		{name: "a service that a wildcard covers", before: []string{virtualService("*.example.com")}, change: service, sent: []string{"8080"}},
		{name: "a service, with listeners of all ports", before: []string{listeners}, change: service, sent: []string{"15000", "8080", "unix:///tmp/all"}},
		{name: "a VirtualService for no service", change: objects(virtualService("other.example.com")), sent: []string{"80"}},
		{
			name: "a VirtualService for no service, with listeners of all ports", before: []string{listeners},
			change: objects(virtualService("other.example.com")), sent: []string{"15000", "80", "unix:///tmp/all"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.client, c.typeURL, c.names = in("sidecar", "shop"), envoy.RouteType, []string{"15000", "80", "8080", "9000", "unix:///tmp/all"}
			c.run(t)
		})
	}
}

// TestChangesOfEndpoints: endpoints change the clusters that have them, their addresses or
// their identities in them, and no others.
func TestChangesOfEndpoints(t *testing.T) {
	const name = "outbound|80||" + cart
	mutual := cartRule(`, "trafficPolicy": {"tls": {"mode": "ISTIO_MUTUAL"}}`)
	first := "10.0.0.1 tls=istio account=spiffe://x/ns/shop/sa/a"
	for _, c := range []struct {
		change
		resolution  registry.Resolution
		first, then string
	}{
		{change{name: "another identity", before: []string{mutual}, sent: []string{name}}, registry.ClientSideLB, first, "10.0.0.1 tls=istio account=spiffe://x/ns/shop/sa/b"},
		{change{name: "another address of one identity", before: []string{mutual}}, registry.ClientSideLB, first, "10.0.0.2 tls=istio account=spiffe://x/ns/shop/sa/a"},
		{change{name: "the first that takes mutual TLS", sent: []string{name}}, registry.ClientSideLB, "10.0.0.1", "10.0.0.1 tls=istio"},
		{change{name: "an address of EDS"}, registry.ClientSideLB, "10.0.0.1", "10.0.0.2"},
		{change{name: "an address of DNS", sent: []string{name}}, registry.DNSLB, "a.example.com", "b.example.com"},
	} {
		t.Run(c.name, func(t *testing.T) {
			svc := testService("shop", cart, 80)
			svc.Resolution = c.resolution
			c.services = populate(svc)
			c.services.place(svc, c.first)
			c.client, c.typeURL, c.names = in("sidecar", "shop"), envoy.ClusterType, []string{name, "PassthroughCluster"}
			c.change.change = func(s *scene) {
				then := populate(svc)
				then.place(svc, c.then)
				s.must(s.kubernetes.SetEndpoints(svc.Hostname, "shop", then.endpoints[svc]))
			}
			c.run(t)
		})
	}
}

// TestChangesOfImports: a service that comes takes the place of a newer one where there is
// no room for both.
func TestChangesOfImports(t *testing.T) {
	s := stage(t, traffic.Options{Limits: traffic.Limits{Imports: 3}}, objectsOf(t,
		`Sidecar shop/s {"egress": [{"port": {"number": 80, "protocol": "HTTP", "name": "http"}, "hosts": ["*/a.com"]}, {"hosts": ["*/*"]}]}`),
		populate(agedService("a.com", 1), agedService("b.com", 9)))
	f := s.follow(in("sidecar", "shop"), envoy.ClusterType)
	s.must(s.kubernetes.SetService(agedService("c.com", 2)))
	s.applied()
	f.check()
	if got := f.sent(); !slices.Equal(got, []string{"outbound|80||b.com", "outbound|80||c.com"}) {
		t.Errorf("%q are sent or removed", got)
	}
	s.must(s.kubernetes.RemoveService("c.com", "shop"))
	s.applied()
	f.check()
}

// TestChangesOnTranslatedPorts: a VirtualService, and a service behind AUTO_PASSTHROUGH, are
// on the ports that a router listens on for those of the Gateway.
func TestChangesOnTranslatedPorts(t *testing.T) {
	configs := objectsOf(t, `VirtualService shop/v {"hosts": ["a.com"], "gateways": ["ingress/edge"],
		"http": [{"route": [{"destination": {"host": "cart"}}]}], "tls": [{"match": [{"sniHosts": ["a.com"]}], "route": [{"destination": {"host": "cart"}}]}]}`)
	configs.add(istio.Gateway, "ingress/edge", gatewayOf(
		serverOf(80, "HTTP", "", "*"), serverOf(443, "TLS", "pass", "*"), serverOf(15443, "TLS", "auto", "*.local")))
	services := cartPopulation()
	front := testService("ingress", "edge.example.com", 80, 443, 15443)
	services.services = append(services.services, front)
	for i, port := range front.Ports {
		services.endpoints[front] = append(services.endpoints[front], &registry.Endpoint{
			Addresses: []string{"10.9.9.1"}, EndpointPort: []uint32{8080, 8443, 16443}[i], ServicePortName: port.Name, HealthStatus: registry.Healthy,
		})
	}
	s := stage(t, traffic.Options{}, configs, services)
	routes, listeners := s.follow(edge(), envoy.RouteType), s.follow(edge(), envoy.ListenerType)
	s.must(s.store.Delete(istio.VirtualService, "v", "shop", nil))
	s.applied()
	if got := slices.Concat(routes.sent(), listeners.sent()); !slices.Equal(got, []string{"http.8080", "0.0.0.0_8443"}) {
		t.Errorf("without the VirtualService %q are sent", got)
	}
	s.must(s.kubernetes.SetService(testService("shop", "new.shop.svc.cluster.local", 80)))
	s.applied()
	if got := slices.Concat(routes.sent(), listeners.sent()); !slices.Equal(got, []string{"0.0.0.0_16443"}) {
		t.Errorf("with one more service %q are sent", got)
	}
	routes.check()
	listeners.check()
}

// TestFirstTargetCounts: of several endpoints that a service has at a router's address, the
// first says on which port the router listens.
func TestFirstTargetCounts(t *testing.T) {
	svc := testService("ingress", "edge.example.com", 80)
	services := populate(svc)
	for _, port := range []uint32{8080, 9090} {
		services.endpoints[svc] = append(services.endpoints[svc], &registry.Endpoint{
			Addresses: []string{"10.9.9.1"}, EndpointPort: port, ServicePortName: svc.Ports[0].Name, HealthStatus: registry.Healthy,
		})
	}
	got := stage(t, traffic.Options{}, objectsOf(t, gatewayFor("edge")), services).ask(edge(), envoy.ListenerType).names
	if !slices.Equal(got, []string{"0.0.0.0_8080"}) {
		t.Errorf("the listeners are %q", got)
	}
}

// TestManyChangesAtOnce: what many changes in one push lead to is what there is when a
// server starts with them.
func TestManyChangesAtOnce(t *testing.T) {
	object := func(i, generation int) configstore.Config {
		c := configstore.Config{Meta: configstore.Meta{
			Namespace: fmt.Sprintf("n%d", i%3), Name: fmt.Sprintf("o%03d", i), CreationTimestamp: time.Unix(int64(i%7), 0),
		}}
		host := fmt.Sprintf("h%d.example.com", (i+generation)%20)
		switch i % 4 {
		case 0:
			c.GroupVersionKind, c.Spec = istio.VirtualService, toCart("/", nil, host)
			c.Spec.(*networking.VirtualService).Http[0].Route[0].Destination.Host = host
		case 1:
			c.GroupVersionKind = istio.DestinationRule
			c.Spec = &networking.DestinationRule{Host: host, Subsets: []*networking.Subset{{Name: fmt.Sprint("s", i)}}}
		case 2:
			c.GroupVersionKind, c.Spec = istio.Gateway, gatewayOf(serverOf(uint32(80+i), "HTTP", "", host))
		default:
			c.GroupVersionKind = istio.Sidecar
			c.Spec = &networking.Sidecar{Egress: []*networking.IstioEgressListener{{Hosts: []string{fmt.Sprintf("*/h%d.example.com", i%20), "*/h1.example.com"}}}}
		}
		return c
	}
	services := populate()
	for i := range 20 {
		services.services = append(services.services, testService("n0", registry.Hostname(fmt.Sprintf("h%d.example.com", i)), 80))
	}
	var before configList
	var changes []configstore.Mutation
	for i := range 300 {
		was, is := object(i, 0), object(i, 1)
		switch {
		case i%5 > 0 && i%7 > 0:
			before, changes = append(before, &was), append(changes, configstore.Mutation{Op: configstore.OpUpdate, Config: is})
		case i%5 > 0:
			before, changes = append(before, &was), append(changes, configstore.Mutation{Op: configstore.OpDelete, Config: was})
		case i%7 > 0:
			changes = append(changes, configstore.Mutation{Op: configstore.OpCreate, Config: is})
		}
	}
	s := stage(t, traffic.Options{}, before, services)
	var followers []*follower
	for _, n := range []*core.Node{in("sidecar", "n0"), in("sidecar", "n1"), in("sidecar", "n2"), in("sidecar", "n3")} {
		followers = append(followers, s.follow(n, envoy.ClusterType), s.follow(n, envoy.RouteType, "80"))
	}
	followers = append(followers, s.follow(edge(), envoy.ListenerType), s.follow(edge(), envoy.RouteType))
	_, err := s.store.Apply(changes...)
	s.must(err)
	s.applied()
	var after configList
	for _, schema := range s.store.Schemas().All() {
		after = append(after, s.store.List(schema.GroupVersionKind, configstore.NamespaceAll)...)
	}
	fresh := stage(t, traffic.Options{}, after, services)
	for _, f := range followers {
		if len(f.sent()) == 0 {
			t.Errorf("%v was sent nothing", f.node)
		}
		want := fresh.ask(f.node, f.typeURL, f.names...).resources
		if diff := cmp.Diff(slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(f.has()))); diff != "" {
			t.Errorf("%v has (-want +got):\n%s", f.node, diff)
		}
		f.scene = fresh
		f.check()
	}
}

// TestNarrowedService: proxies that no longer see a service lose the clusters of its subsets, and get
// them back.
func TestNarrowedService(t *testing.T) {
	service := func(exportTo ...registry.Visibility) *registry.Service {
		svc := testService("shop", "cart.example.com", 80)
		svc.Attributes.ExportTo = exportTo
		return svc
	}
	s := stage(t, traffic.Options{}, objectsOf(t,
		`DestinationRule shop/cart {"host": "cart.example.com", "subsets": [{"name": "v1"}]}`,
	), populate(service()))
	f := s.follow(in("sidecar", "other"), envoy.ClusterType)
	for _, exportTo := range [][]registry.Visibility{{registry.VisibilityPrivate}, {"other"}, {"elsewhere"}, nil} {
		f.sent()
		s.must(s.kubernetes.SetService(service(exportTo...)))
		s.applied()
		f.check()
		if got, want := f.sent(), "outbound|80|v1|cart.example.com"; !slices.Contains(got, want) {
			t.Errorf("exportTo %q: sent %v, want %s among them", exportTo, got, want)
		}
	}
}
