// SPDX-License-Identifier: Apache-2.0

package gatewayapi_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"google.golang.org/protobuf/types/known/structpb"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/configstore/kube/gatewayapi"
	"github.com/pilotkit/pilotkit/configstore/manifest"
	"github.com/pilotkit/pilotkit/configstore/memory"
)

// manyRoutes returns 10,000 HTTPRoutes of one Gateway in 1,000 namespaces, and the Gateway with its
// class.
func manyRoutes(b *testing.B, schemas configstore.Schemas) (out []configstore.Mutation) {
	b.Helper()
	var text strings.Builder
	text.WriteString(edgeClass + "---" + strings.Replace(edgeGateway, "protocol: HTTP}", "protocol: HTTP, allowedRoutes: {namespaces: {from: All}}}", 1))
	for i := range 10_000 {
		fmt.Fprintf(&text, `---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: route-%d, namespace: ns-%d}
spec:
  parentRefs: [{name: edge, namespace: shop}]
  hostnames: [host-%d.example.com]
  rules: [{matches: [{path: {type: PathPrefix, value: /}}], backendRefs: [{name: cart, port: 8080}]}]
`, i, i%1000, i)
	}
	for _, doc := range manifest.Parse(schemas, []byte(text.String()), manifest.Options{MaxBytes: -1, MaxDocuments: -1}) {
		if doc.Err != nil {
			b.Fatal(doc.Err)
		}
		out = append(out, configstore.Mutation{Op: configstore.OpCreate, Config: doc.Config})
	}
	return out
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// BenchmarkCacheSync is the time from a store with 10,000 HTTPRoutes to a cache that has synced.
func BenchmarkCacheSync(b *testing.B) {
	objects := memory.NewController(memory.Make(gatewayapi.DirectorySchemas()))
	if _, err := objects.Apply(manyRoutes(b, objects.Schemas())...); err != nil {
		b.Fatal(err)
	}
	objects.Drain()
	before := heap()
	var cache *gatewayapi.Cache
	b.ReportAllocs()
	for b.Loop() {
		cache = gatewayapi.NewCache(objects)
		objects.Drain()
		cache.HasSynced()
		cache.Drain()
	}
	if !cache.HasSynced() || len(cache.List(istio.VirtualService, configstore.NamespaceAll)) != 10_000 {
		b.Fatal("not all are there")
	}
	b.ReportMetric(float64(heap()-before)/10_000/float64(b.N), "heap-B/route")
	runtime.KeepAlive(cache)
}

// BenchmarkCacheChange is the time from the write of one of 10,000 HTTPRoutes to the events of the
// cache.
func BenchmarkCacheChange(b *testing.B) {
	objects := memory.NewController(memory.Make(gatewayapi.DirectorySchemas()))
	all := manyRoutes(b, objects.Schemas())
	if _, err := objects.Apply(all...); err != nil {
		b.Fatal(err)
	}
	cache := gatewayapi.NewCache(objects)
	events := 0
	cache.Subscribe([]configstore.GroupVersionKind{istio.VirtualService}, func(changes []configstore.Change) { events += len(changes) })
	objects.Drain()
	cache.HasSynced()
	cache.Drain()
	var versions [2]configstore.Config
	for i, value := range []string{"/a", "/b"} {
		versions[i] = all[5000].Config.Clone()
		spec, _ := versions[i].Spec.(*structpb.Struct)
		rule := spec.GetFields()["rules"].GetListValue().GetValues()[0].GetStructValue()
		match := rule.GetFields()["matches"].GetListValue().GetValues()[0].GetStructValue()
		match.GetFields()["path"].GetStructValue().GetFields()["value"] = structpb.NewStringValue(value)
	}
	i := 0
	b.ReportAllocs()
	for b.Loop() {
		i++
		if _, err := objects.Update(versions[i%2]); err != nil {
			b.Fatal(err)
		}
		objects.Drain()
		cache.Drain()
	}
	if events != 10_000+i {
		b.Fatalf("%d events of %d changes", events-10_000, i)
	}
}
