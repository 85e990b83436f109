// SPDX-License-Identifier: Apache-2.0

package gatewayconformance

import (
	"fmt"
	"strings"
	"testing"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/structpb"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/pilotkit/pilotkit/aggregate"
	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/configstore/kube/gatewayapi"
	"github.com/pilotkit/pilotkit/configstore/manifest"
	"github.com/pilotkit/pilotkit/configstore/memory"
	"github.com/pilotkit/pilotkit/internal/test/testserver"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

// gatewaysText are a Gateway "edge", and "small", which has one route.
const gatewaysText = `
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: c}
spec: {controllerName: istio.io/gateway-controller}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: edge, namespace: shop}
spec:
  gatewayClassName: c
  listeners: [{name: web, port: 80, protocol: HTTP, allowedRoutes: {namespaces: {from: All}}}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: small, namespace: shop}
spec:
  gatewayClassName: c
  listeners: [{name: web, port: 80, protocol: HTTP, allowedRoutes: {namespaces: {from: All}}}]
`

const routeText = `---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: route-%d, namespace: ns-%d}
spec:
  parentRefs: [{name: %s, namespace: shop}]
  hostnames: [host-%d.example.com]
  rules: [{matches: [{path: {type: PathPrefix, value: /}}], backendRefs: [{name: cart, port: 8080}]}]
`

// objectsOf parses documents of a directory.
func objectsOf(b *testing.B, text string) (out []configstore.Config) {
	b.Helper()
	for _, doc := range manifest.Parse(gatewayapi.DirectorySchemas(), []byte(text), manifest.Options{MaxBytes: -1, MaxDocuments: -1}) {
		if doc.Err != nil {
			b.Fatal(doc.Err)
		}
		out = append(out, doc.Config)
	}
	return out
}

// benchPlane is a control plane of objects in memory.
type benchPlane struct {
	objects *memory.Controller
	conn    *grpc.ClientConn
}

func newBenchPlane(b *testing.B, objects []configstore.Config) *benchPlane {
	b.Helper()
	p := &benchPlane{objects: memory.NewController(memory.Make(gatewayapi.DirectorySchemas()))}
	var creates []configstore.Mutation
	for _, config := range objects {
		creates = append(creates, configstore.Mutation{Op: configstore.OpCreate, Config: config})
	}
	if _, err := p.objects.Apply(creates...); err != nil {
		b.Fatal(err)
	}
	gateways := gatewayapi.NewCache(p.objects)
	configs := aggregate.MakeCache(gateways, memory.NewController(memory.Make(istio.Schemas())))
	registries := aggregate.NewController()
	server := ads.New(registries, ads.Options{
		Providers: []ads.Provider{traffic.New(configs, traffic.Options{})},
		Debounce:  xdsupdate.Debounce{After: -1},
	})
	s := grpc.NewServer(ads.ServerOptions()...)
	server.Register(s)
	listener := testserver.Listen(b, "127.0.0.1:0")
	testserver.Serve(b, listener, s, configs.Run, registries.Run, server.Run)
	if err := configstore.WaitForSync(b.Context(), configs); err != nil {
		b.Fatal(err)
	}
	var err error
	if p.conn, err = grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(256<<20))); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = p.conn.Close() })
	return p
}

// gateway returns a proxy of a Gateway that has its routes.
func (p *benchPlane) gateway(b *testing.B, name string) *xdstest.Client {
	b.Helper()
	labels, err := structpb.NewStruct(map[string]any{"LABELS": map[string]any{gatewayv1.GatewayNameLabelKey: name}})
	if err != nil {
		b.Fatal(err)
	}
	c := xdstest.NewClient(p.conn, xdstest.ClientOptions{
		Delta: true,
		Node:  &core.Node{Id: "router~10.0.0.1~" + name + ".shop~shop.svc.cluster.local", Metadata: labels},
	})
	b.Cleanup(c.Close)
	if err := c.Connect(b.Context()); err != nil {
		b.Fatal(err)
	}
	if err := c.Subscribe(envoy.RouteType, "http.80"); err != nil {
		b.Fatal(err)
	}
	if _, err := c.Next(b.Context()); err != nil {
		b.Fatal(err)
	}
	if !c.State().Has(envoy.RouteType, "http.80") {
		b.Fatalf("gateway %s has no routes", name)
	}
	return c
}

// withPath returns an HTTPRoute with another path.
func withPath(config configstore.Config, path string) configstore.Config {
	config = config.Clone()
	spec, _ := config.Spec.(*structpb.Struct)
	rule := spec.GetFields()["rules"].GetListValue().GetValues()[0].GetStructValue()
	match := rule.GetFields()["matches"].GetListValue().GetValues()[0].GetStructValue()
	match.GetFields()["path"].GetStructValue().GetFields()["value"] = structpb.NewStringValue(path)
	return config
}

// BenchmarkRouteChange is one changed HTTPRoute, from its write until a proxy of its Gateway has
// received its routes: for the Gateway with all routes, in 1,000 namespaces, in one route
// configuration, and for another Gateway with this route only.
func BenchmarkRouteChange(b *testing.B) {
	for _, routes := range []int{1_000, 10_000} {
		var text strings.Builder
		text.WriteString(gatewaysText)
		for i := range routes {
			fmt.Fprintf(&text, routeText, i, i%1000, "edge", i)
		}
		fmt.Fprintf(&text, routeText, routes, 0, "small", routes)
		objects := objectsOf(b, text.String())
		p := newBenchPlane(b, objects)
		for gateway, route := range map[string]configstore.Config{"edge": objects[3+routes/2], "small": objects[3+routes]} {
			b.Run(fmt.Sprintf("routes=%d/gateway=%s", routes, gateway), func(b *testing.B) {
				c := p.gateway(b, gateway)
				defer c.Close()
				versions := []configstore.Config{withPath(route, "/a"), withPath(route, "/b")}
				i := 0
				b.ReportAllocs()
				for b.Loop() {
					if _, err := p.objects.Update(versions[i%2]); err != nil {
						b.Fatal(err)
					}
					if _, err := c.Next(b.Context()); err != nil {
						b.Fatal(err)
					}
					i++
				}
			})
		}
	}
}
