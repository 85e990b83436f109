// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"runtime"
	"testing"
	"unique"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/proto"

	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/resource"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/wire"
)

// TestRecalledIsBounded: of claims that differ, only the last are remembered.
func TestRecalledIsBounded(t *testing.T) {
	c := newCache()
	conn := &connection{cache: c, identity: identity{view: unique.Make(View{})}}
	recall := func(i int) *resource.Snapshot {
		t.Helper()
		data, err := proto.Marshal(&discovery.DeltaDiscoveryRequest{
			TypeUrl: "type", InitialResourceVersions: map[string]string{"a": resource.Version(uint64(i + 1))},
		})
		if err != nil {
			t.Fatal(err)
		}
		r := &received{Request: wire.NewRequest(true, 0, 0)}
		if err := r.Decode(data); err != nil {
			t.Fatal(err)
		}
		return c.recall(conn, r)
	}
	// All of them are held, as if each had its client.
	var held []*resource.Snapshot
	for i := range maxRecalled.Get() + 3 {
		held = append(held, recall(i))
	}
	if n := len(c.recalled); n != maxRecalled.Get() {
		t.Errorf("%d claims are remembered, want %d", n, maxRecalled)
	}
	for i, old := range held[3:] {
		if recall(i+3) != old {
			t.Errorf("claims %d are not remembered", i+3)
		}
	}
	if recall(0) == held[0] {
		t.Error("the first claims are remembered")
	}
	runtime.KeepAlive(held)
}
