// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"testing"
	"time"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/kube"
)

// TestMany: as many objects as a large mesh has are one batch.
func TestMany(t *testing.T) {
	const objects = 20_000
	server := apiserver.Server(t)
	schemas := limits("many.example.com")
	kind := schemas.All()[0].GroupVersionKind
	server.ApplyCRDs(t, crdsOf(schemas))
	ns := server.Namespace(t)
	fill(t, server, schemas, ns, objects)
	c := newCache(t, server.Config(), schemas, kube.Options{})
	batches, total := 0, 0
	c.SubscribeBatch([]configstore.GroupVersionKind{kind}, func(changes []configstore.Change) {
		batches++
		total += len(changes)
	})
	begin := time.Now()
	runSynced(t, c)
	t.Logf("%d objects in %v, %d batches", objects, time.Since(begin), batches)
	if total != objects || len(c.List(kind, ns)) != objects || batches != 1 {
		t.Errorf("%d objects and %d events in %d batches, want %d in one", len(c.List(kind, ns)), total, batches, objects)
	}
}
