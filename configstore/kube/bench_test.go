// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"encoding/json"
	"fmt"
	"runtime"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/pilotkit/pilotkit/configstore/istio"
)

// received is a ServiceEntry as the API server sends it, managed fields included.
const received = `{"apiVersion":"networking.istio.io/v1","kind":"ServiceEntry","metadata":{
"name":"entry-%[1]d","namespace":"default","uid":"b8a4e1f0-8d2c-4c6e-9b57-%012[1]d","resourceVersion":"%[2]d","generation":3,
"creationTimestamp":"2026-01-02T03:04:05Z","labels":{"app":"orders","team":"payments"},
"annotations":{"note":"made by hand"},
"managedFields":[{"apiVersion":"networking.istio.io/v1","fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:labels":{".":{},"f:app":{},"f:team":{}}},
"f:spec":{".":{},"f:endpoints":{},"f:hosts":{},"f:location":{},"f:ports":{},"f:resolution":{}}},"manager":"kubectl","operation":"Update","time":"2026-01-02T03:04:05Z"}]},
"spec":{"hosts":["orders-%[1]d.example.com"],"ports":[{"number":80,"name":"http","protocol":"HTTP"}],"location":"MESH_INTERNAL","resolution":"STATIC",
"endpoints":[{"address":"10.0.0.1"},{"address":"10.0.0.2"}]}}`

func receive(tb testing.TB, i, revision int) *object {
	tb.Helper()
	o := &object{}
	if err := json.Unmarshal(fmt.Appendf(nil, received, i, revision), o); err != nil {
		tb.Fatal(err)
	}
	return o
}

// filled returns the publisher of a cache with n ServiceEntries.
func filled(tb testing.TB, n int) *publisher {
	tb.Helper()
	c, err := New(&rest.Config{Host: "http://127.0.0.1:1"}, istio.Schemas())
	if err != nil {
		tb.Fatal(err)
	}
	p := &publisher{}
	for _, k := range c.kinds {
		if k.gvk() == istio.ServiceEntry {
			p.scope = k.scopes[0]
		}
	}
	list := make([]any, n)
	for i := range list {
		list[i] = receive(tb, i, i+1)
	}
	if err := p.Replace(list, "1"); err != nil {
		tb.Fatal(err)
	}
	if got := len(c.List(istio.ServiceEntry, "")); got != n {
		tb.Fatalf("%d objects, want %d: %v", got, n, c.Errors())
	}
	return p
}

// BenchmarkChange is the cost of one watch event, without decoding its metadata.
func BenchmarkChange(b *testing.B) {
	for _, n := range []int{1_000, 20_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			p := filled(b, n)
			o := receive(b, 7, n)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				next := *o
				next.ResourceVersion = fmt.Sprint(n + 1 + i)
				if err := p.Update(&next); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkRelist is the cost of a list in which one of n objects has changed.
func BenchmarkRelist(b *testing.B) {
	for _, n := range []int{1_000, 20_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			p := filled(b, n)
			list := make([]any, n)
			for i := range list {
				list[i] = receive(b, i, i+1)
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				changed := *receive(b, 7, n+1+i)
				list[7] = &changed
				if err := p.Replace(list, "1"); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkHeap is the memory of an object.
func BenchmarkHeap(b *testing.B) {
	const n = 20_000
	for b.Loop() {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		p := filled(b, n)
		runtime.GC()
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/n, "heap-B/object")
		runtime.KeepAlive(p)
	}
}
