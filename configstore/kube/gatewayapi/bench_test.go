// SPDX-License-Identifier: Apache-2.0

package gatewayapi

import (
	"fmt"
	"runtime"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/pilotkit/pilotkit/configstore/istio"
)

// benchRoute returns a route with its own host, for the one Gateway.
func benchRoute(namespaces, i int, path string) *gatewayv1.HTTPRoute {
	ns := gatewayv1.Namespace("infra")
	return &gatewayv1.HTTPRoute{
		ObjectMeta: metav1.ObjectMeta{Namespace: fmt.Sprint("n", i%namespaces), Name: fmt.Sprint("r", i), Generation: 1},
		Spec: gatewayv1.HTTPRouteSpec{
			CommonRouteSpec: gatewayv1.CommonRouteSpec{ParentRefs: []gatewayv1.ParentReference{{Namespace: &ns, Name: "edge"}}},
			Hostnames:       []gatewayv1.Hostname{gatewayv1.Hostname(fmt.Sprint("h", i, ".example.com"))},
			Rules: []gatewayv1.HTTPRouteRule{{
				Matches: []gatewayv1.HTTPRouteMatch{{Path: &gatewayv1.HTTPPathMatch{Value: &path}}},
				BackendRefs: []gatewayv1.HTTPBackendRef{{BackendRef: gatewayv1.BackendRef{BackendObjectReference: gatewayv1.BackendObjectReference{
					Name: "app", Port: new(gatewayv1.PortNumber(80)),
				}}}},
			}},
		},
	}
}

// benchObjects returns the routes of a Gateway, ten in each namespace.
func benchObjects(routes int) []Change {
	all := gatewayv1.NamespacesFromAll
	changes := []Change{Set(&gatewayv1.Gateway{
		ObjectMeta: metav1.ObjectMeta{Namespace: "infra", Name: "edge", Generation: 1},
		Spec: gatewayv1.GatewaySpec{GatewayClassName: "istio", Listeners: []gatewayv1.Listener{{
			Name: "web", Port: 80, Protocol: gatewayv1.HTTPProtocolType,
			AllowedRoutes: &gatewayv1.AllowedRoutes{Namespaces: &gatewayv1.RouteNamespaces{From: &all}},
		}}},
	})}
	namespaces := max(1, routes/10)
	for i := range namespaces {
		changes = append(changes, Set(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("n", i)}}), Set(&corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: fmt.Sprint("n", i), Name: "app"},
			Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "http", Port: 80}}},
		}))
	}
	for i := range routes {
		changes = append(changes, Set(benchRoute(namespaces, i, "/a")))
	}
	return changes
}

// BenchmarkStart converts everything: 10,000 HTTPRoutes on one Gateway, in 1,000 namespaces.
func BenchmarkStart(b *testing.B) {
	changes := benchObjects(10_000)
	b.ReportAllocs()
	var c *Converter
	for b.Loop() {
		c = NewConverter()
		if update := c.Apply(changes...); len(update.Changes) != 10_001 {
			b.Fatal(len(update.Changes))
		}
	}
	var with, without runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&with)
	runtime.KeepAlive(c)
	runtime.GC()
	runtime.ReadMemStats(&without)
	b.ReportMetric(float64(with.HeapAlloc-without.HeapAlloc)/10_000, "B/route")
	runtime.KeepAlive(changes)
}

// BenchmarkRoute changes one HTTPRoute among others: its cost does not grow with them.
func BenchmarkRoute(b *testing.B) {
	for _, routes := range []int{100, 1_000, 10_000} {
		b.Run(fmt.Sprint(routes), func(b *testing.B) {
			c := NewConverter()
			c.Apply(benchObjects(routes)...)
			namespaces := routes / 10
			states := []Change{Set(benchRoute(namespaces, 7, "/b")), Set(benchRoute(namespaces, 7, "/a"))}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if update := c.Apply(states[i%2]); len(update.Changes) != 1 {
					b.Fatal(len(update.Changes))
				}
			}
		})
	}
}

// BenchmarkServicePort deletes and restores a Service that ten routes reference.
func BenchmarkServicePort(b *testing.B) {
	c := NewConverter()
	c.Apply(benchObjects(10_000)...)
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "n5", Name: "app"},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "http", Port: 80}}},
	}
	states := []Change{Delete[*corev1.Service]("n5", "app"), Set(service)}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if update := c.Apply(states[i%2]); len(update.Statuses) != 10 {
			b.Fatal(len(update.Statuses))
		}
	}
}

// TestCost: a changed route recomputes one VirtualService, and reads nothing of the other routes.
func TestCost(t *testing.T) {
	t.Parallel()
	c := NewConverter()
	c.Apply(benchObjects(300)...)
	update := c.Apply(Set(benchRoute(30, 7, "/b")))
	if len(update.Changes) != 1 || len(update.Statuses) != 0 {
		t.Errorf("changes %v, statuses %v", update.Changes, update.Statuses)
	}
	for _, config := range update.Before.Configs(istio.VirtualService) {
		now := update.After.Get(istio.VirtualService, config.Name, config.Namespace)
		if same := now == config; same == (config.Key() == update.Changes[0].Curr.Key()) {
			t.Errorf("%v: the same config: %t", config.Key(), same)
		}
	}
}

// TestNamespacesCost: routes do not depend on other namespaces, although the namespaces that a
// selector matches are hosts of the server.
func TestNamespacesCost(t *testing.T) {
	t.Parallel()
	sys := newSystem()
	if err := sys.applyAll(world + `
kind: Gateway
metadata: {name: edge, namespace: infra}
spec:
  gatewayClassName: istio
  listeners: [{name: web, port: 80, protocol: HTTP, allowedRoutes: {namespaces: {from: Selector, selector: {matchLabels: {tier: x}}}}}]
---
` + httpRoute("r", `[{`+toCart+`}]`)); err != nil {
		t.Fatal(err)
	}
	c := sys.converter
	for at, readers := range c.readers {
		for n := range readers {
			if n.kind == nodeRoute && (at.kind == allNamespaces || at.kind == aNamespace && at.key.Name != "shop") {
				t.Errorf("the route %v depends on %v", n.key, at)
			}
		}
	}
	update := c.Apply(Set(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "new", Labels: map[string]string{"tier": "x"}}}))
	if len(update.Changes) != 1 || update.Changes[0].Curr.GroupVersionKind != istio.Gateway {
		t.Errorf("a namespace that is selected changes %v", update.Changes)
	}
}

// TestReaders: snapshots can be read while others are computed.
func TestReaders(t *testing.T) {
	t.Parallel()
	c := NewConverter()
	c.Apply(benchObjects(50)...)
	snapshots := make(chan *Snapshot)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for s := range snapshots {
			for _, kind := range configKinds {
				if n := len(s.Configs(kind)); kind == istio.VirtualService && n != 50 {
					t.Errorf("%d VirtualServices", n)
				}
			}
			for key, status := range s.Statuses() {
				if status == nil {
					t.Errorf("%v has no status", key)
				}
			}
		}
	}()
	for i := range 200 {
		path := []string{"/b", "/a"}[i%2]
		snapshots <- c.Apply(Set(benchRoute(5, 7, path))).After
	}
	close(snapshots)
	<-done
}
