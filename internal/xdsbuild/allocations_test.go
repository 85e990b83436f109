// SPDX-License-Identifier: Apache-2.0

package xdsbuild_test

import (
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/pilotkit/pilotkit/internal/xdsbuild"
	"github.com/pilotkit/pilotkit/registry"
)

// TestClusterAllocations bounds what a cluster costs that is only encoded, because the first proxy
// of a kind waits for all of them.
func TestClusterAllocations(t *testing.T) {
	svc := service(registry.ClientSideLB)
	for _, tc := range []struct {
		protocol registry.Protocol
		most     float64
	}{{registry.ProtocolHTTP, 6}, {registry.ProtocolGRPC, 20}} {
		svc.Ports[0].Protocol = tc.protocol
		u := xdsbuild.Upstream{Service: svc, Port: svc.Ports[0], EncodedMetadata: true}
		got := testing.AllocsPerRun(100, func() {
			if _, err := (proto.MarshalOptions{Deterministic: true}).Marshal(u.PlainCluster()); err != nil {
				t.Fatal(err)
			}
		})
		if got > tc.most {
			t.Errorf("%s: %v allocations, want at most %v", tc.protocol, got, tc.most)
		}
	}
}
