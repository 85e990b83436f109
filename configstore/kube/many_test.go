// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"testing"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/kube"
)

// TestMany: the initial objects are one batch, in the order of their keys.
func TestMany(t *testing.T) {
	t.Parallel()
	const objects = 1_000 // BenchmarkSync has more; to create them takes most of the time.
	server := apiserver.Server(t)
	schemas := limits("many.example.com")
	kind := schemas.All()[0].GroupVersionKind
	server.ApplyCRDs(t, crdsOf(schemas))
	ns := server.Namespace(t)
	fill(t, server, schemas, ns, objects)
	c := newCache(t, restConfig(server.Config()), schemas, kube.Options{})
	batches, total := 0, 0
	c.Subscribe([]configstore.GroupVersionKind{kind}, func(changes []configstore.Change) {
		batches++
		total += len(changes)
		for i := 1; i < len(changes); i++ {
			if changes[i-1].Curr.Name >= changes[i].Curr.Name {
				t.Errorf("%s comes before %s", changes[i-1].Curr.Name, changes[i].Curr.Name)
			}
		}
	})
	runSynced(t, c)
	if total != objects || len(c.List(kind, ns)) != objects || batches != 1 {
		t.Errorf("%d objects and %d events in %d batches, want %d in one", len(c.List(kind, ns)), total, batches, objects)
	}
}

// BenchmarkSync is the time from Run to HasSynced with 20,000 objects in a real API
// server. It takes a minute to create them.
func BenchmarkSync(b *testing.B) {
	const objects = 20_000
	server := apiserver.Server(b)
	schemas := limits("sync.example.com")
	kind := schemas.All()[0].GroupVersionKind
	server.ApplyCRDs(b, crdsOf(schemas))
	ns := server.Namespace(b)
	fill(b, server, schemas, ns, objects)
	b.ReportAllocs()
	for b.Loop() {
		c := newCache(b, restConfig(server.Config()), schemas, kube.Options{})
		end := runSynced(b, c)
		if got := len(c.List(kind, ns)); got != objects {
			b.Fatalf("%d objects, want %d", got, objects)
		}
		end()
	}
}
