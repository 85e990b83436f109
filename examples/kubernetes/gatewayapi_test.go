// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/structpb"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pilotkit/pilotkit/internal/test/kubetest"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

const gateway = `
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: edge}
spec: {controllerName: istio.io/gateway-controller}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: edge, namespace: demo}
spec:
  gatewayClassName: edge
  listeners: [{name: web, port: 8080, protocol: HTTP}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: greeter, namespace: demo}
spec:
  parentRefs: [{name: edge}]
  hostnames: [greeter.example.org]
  rules: [{backendRefs: [{name: greeter, port: 80}]}]
`

// TestGatewayAPI: a Gateway and an HTTPRoute become listeners and routes of the Envoys of that
// Gateway only, and the route's status has no error.
func TestGatewayAPI(t *testing.T) {
	c := newCluster(t)
	c.server.ApplyCRDs(t, kubetest.GatewayAPICRDs(t, "standard"))
	c = newCluster(t) // which knows the kinds
	c.apply(greeter)
	_, xds := startPlane(t, c.serviceAccount())
	conn, err := grpc.NewClient(xds, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	connect := func(name string) *xdstest.Client {
		labels, err := structpb.NewStruct(map[string]any{"LABELS": map[string]any{"gateway.networking.k8s.io/gateway-name": name}})
		if err != nil {
			t.Fatal(err)
		}
		e := xdstest.NewClient(conn, xdstest.ClientOptions{Answer: refuseRoutes, Node: &core.Node{
			Id: "router~10.9.9.8~" + name + ".demo~demo.svc.cluster.local", Metadata: labels,
		}})
		t.Cleanup(e.Close)
		if err := e.Connect(ctx); err != nil {
			t.Fatal(err)
		}
		if err := e.Subscribe(envoy.ListenerType, "*"); err != nil {
			t.Fatal(err)
		}
		return e
	}
	edge, other := connect("edge"), connect("other")
	c.apply(gateway)
	if err := edge.Await(ctx, func(s xdstest.State) bool { return s.Has(envoy.ListenerType, "0.0.0.0_8080") }); err != nil {
		t.Fatalf("the listener: %v", err)
	}
	if err := edge.Subscribe(envoy.RouteType, "http.8080"); err != nil {
		t.Fatal(err)
	}
	if err := edge.Await(ctx, func(s xdstest.State) bool {
		text := string(s.Resources(envoy.RouteType)["http.8080"].Any.GetValue())
		return strings.Contains(text, "greeter.example.org") && strings.Contains(text, "greeter.demo.svc.cluster.local")
	}); err != nil {
		t.Errorf("the route: %v", err)
	}
	if other.State().Has(envoy.ListenerType, "0.0.0.0_8080") {
		t.Error("an Envoy of another Gateway has the listener, too")
	}
	c.awaitRouteStatus("greeter", `"reason":"ResolvedRefs"`, `"controllerName":"istio.io/gateway-controller"`)

	// A route that an Envoy rejects is left out, and its status reports that until it is repaired.
	c.apply(strings.ReplaceAll(redirect, "TARGET", refusedHost))
	c.awaitRouteStatus("moved", `"reason":"RefusedByProxy"`, "a proxy refuses it: it may not lead to "+refusedHost)
	c.awaitRouteStatus("greeter", `"reason":"Accepted"`)
	if text := string(edge.State().Resources(envoy.RouteType)["http.8080"].Any.GetValue()); !strings.Contains(text, "greeter.demo.svc.cluster.local") ||
		!strings.Contains(text, "moved.example.org") {
		t.Errorf("beside a refused route the Envoy has %q", text)
	}
	c.apply(strings.ReplaceAll(redirect, "TARGET", "elsewhere.example.org"))
	c.awaitRouteStatus("moved", `"reason":"Accepted"`)
}

const redirect = `
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: moved, namespace: demo}
spec:
  parentRefs: [{name: edge}]
  hostnames: [moved.example.org]
  rules: [{filters: [{type: RequestRedirect, requestRedirect: {hostname: TARGET}}]}]
`

// refusedHost is a host that makes the Envoys of the test reject a redirect to it.
const refusedHost = "refused.example.org"

func refuseRoutes(r xdstest.Response) error {
	for _, resource := range r.Resources {
		if strings.Contains(string(resource.Any.GetValue()), refusedHost) {
			return errors.New("it may not lead to " + refusedHost)
		}
	}
	return nil
}

// awaitRouteStatus waits until the status of an HTTPRoute has some texts.
func (c *cluster) awaitRouteStatus(name string, texts ...string) {
	c.t.Helper()
	routes := c.client.Resource(schema.GroupVersionResource{Group: "gateway.networking.k8s.io", Version: "v1", Resource: "httproutes"}).Namespace("demo")
	eventually(c.t, fmt.Sprintf("the status of %s has %q", name, texts), func() bool {
		o, err := routes.Get(c.t.Context(), name, metav1.GetOptions{})
		if err != nil {
			c.t.Fatal(err)
		}
		text, _ := o.MarshalJSON()
		return !slices.ContainsFunc(texts, func(want string) bool { return !strings.Contains(string(text), want) })
	})
}
