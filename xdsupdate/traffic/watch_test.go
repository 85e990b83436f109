// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"context"
	"slices"
	"testing"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/route"
)

// watchScene has a gateway and the service cart.
func watchScene(t *testing.T) (*scene, *traffic.Watch) {
	t.Helper()
	s := newScene(t, traffic.Options{})
	w := s.policies.Watch(route.Gateway, &registry.Proxy{Namespace: "shop", Labels: registry.Labels{"app": "edge"}, IPAddresses: []string{"10.9.9.1"}})
	t.Cleanup(w.Close)
	s.service(&registry.Service{
		Hostname: "cart.shop.svc.cluster.local", Ports: []*registry.Port{{Name: "http", Number: 80, Protocol: registry.ProtocolHTTP}},
	}, endpoint("10.0.0.1", 8080, "http", "istio"))
	s.apply(plainGateway)
	s.apply(`
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: cart}
spec: {hosts: [cart.example.com], gateways: [edge], http: [{name: all, route: [{destination: {host: cart}}]}]}
`)
	s.next(w)
	return s, w
}

// next returns the next router of a watch.
func (s *scene) next(w *traffic.Watch) (*route.Router, route.Changed) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), testTimeout)
	defer cancel()
	r, changed, err := w.Next(ctx)
	s.must(err)
	return r, changed
}

// TestWatch: a router follows the pushes, and a change costs the parts that it concerns.
func TestWatch(t *testing.T) {
	s, w := watchScene(t)
	const cluster = "outbound|80||cart.shop.svc.cluster.local"
	call := route.Request{Port: 80, Authority: "cart.example.com", Path: "/a"}
	first := w.Router()
	d := first.Route(call)
	if d.Outcome != route.Forwarded || d.Destination.Cluster != cluster || d.Rule.String() != `VirtualService shop/cart, http[0] "all"` {
		t.Fatalf("%+v", d)
	}
	e := first.Endpoints(cluster)
	if len(e.List) != 1 || e.List[0].Address != "10.0.0.1:8080" || !e.List[0].Healthy || e.List[0].TLS == nil || !e.List[0].TLS.Mutual {
		t.Fatalf("%+v", e)
	}

	s.endpoints("cart.shop.svc.cluster.local", endpoint("10.0.0.2", 8080, "http", ""))
	moved, changed := s.next(w)
	if len(changed.Types) > 0 || len(changed.Names[envoy.RouteType]) > 0 || !slices.Contains(changed.Names[envoy.LoadAssignmentType], cluster) {
		t.Errorf("endpoints change %+v", changed)
	}
	if got := moved.Endpoints(cluster).List[0]; got.Address != "10.0.0.2:8080" || got.TLS != nil {
		t.Errorf("%+v", got)
	}
	if after := moved.Route(call); after.Rule != d.Rule {
		t.Error("the routes are compiled again although only endpoints have changed")
	}
	if first.Endpoints(cluster) != e {
		t.Error("the router of a former state has changed")
	}

	s.apply(`
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: cart}
spec: {hosts: [cart.example.com], gateways: [edge], http: [{directResponse: {status: 418}}]}
`)
	answered, _ := s.next(w)
	if d := answered.Route(call); d.Outcome != route.Answered || d.Status != 418 {
		t.Errorf("%+v", d)
	}
	if answered.Endpoints(cluster) != moved.Endpoints(cluster) {
		t.Error("a route changes the endpoints")
	}
	s.apply(`
apiVersion: security.istio.io/v1
kind: AuthorizationPolicy
metadata: {name: deny}
spec: {action: DENY, rules: [{to: [{operation: {paths: [/a]}}]}]}
`)
	denied, _ := s.next(w)
	if d := denied.Route(call); d.Reason != route.Denied || d.Status != 403 || d.Access.By.String() != "AuthorizationPolicy shop/deny, rules[0]" {
		t.Errorf("%+v", d)
	}
}

// TestWatchRegroups: a router whose listening port moves with the service before it.
func TestWatchRegroups(t *testing.T) {
	s, w := watchScene(t)
	s.service(&registry.Service{
		Hostname: "edge.shop.svc.cluster.local", Ports: []*registry.Port{{Name: "http", Number: 80, Protocol: registry.ProtocolHTTP}},
	}, endpoint("10.9.9.1", 8081, "http", ""))
	r, _ := s.next(w)
	if d := r.Route(route.Request{Port: 8081, Authority: "cart.example.com"}); d.Outcome != route.Forwarded {
		t.Errorf("%+v", d)
	}
	if d := r.Route(route.Request{Port: 80, Authority: "cart.example.com"}); d.Reason != route.NoListener || d.Outcome != route.Closed {
		t.Errorf("%+v", d)
	}
}

// TestWatchEnds: Next ends with its context, Run with its channel, and a closed watch keeps its router.
func TestWatchEnds(t *testing.T) {
	s, w := watchScene(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := w.Next(ctx); err == nil {
		t.Error("Next returns without a state")
	}
	stop, ended, changes := make(chan struct{}), make(chan struct{}), make(chan *route.Router)
	go func() {
		defer close(ended)
		w.Run(stop, func(r *route.Router, _ route.Changed) { changes <- r })
	}()
	s.endpoints("cart.shop.svc.cluster.local", endpoint("10.0.0.2", 8080, "http", ""))
	if r := <-changes; r != w.Router() {
		t.Error("Run hands over another router")
	}
	close(stop)
	<-ended
	w.Close()
	before := w.Router()
	s.endpoints("cart.shop.svc.cluster.local", endpoint("10.0.0.3", 8080, "http", ""))
	if w.Router() != before {
		t.Error("a closed watch follows pushes")
	}
}
