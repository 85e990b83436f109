// SPDX-License-Identifier: Apache-2.0

package xdsbuild_test

import (
	"fmt"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/pilotkit/pilotkit/internal/xdsbuild"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// benchEndpoints are endpoints with what real ones have, sorted.
func benchEndpoints(n int) []*registry.Endpoint {
	var out []*registry.Endpoint
	for i := range n {
		out = append(out, endpoint(fmt.Sprintf("10.%d.%d.%d", i/62500, i/250%250, i%250), func(e *registry.Endpoint) {
			e.WorkloadName = "workload"
			e.Shared = &registry.EndpointAttributes{
				Namespace: "shop", Locality: "region/zone/subzone", TLSMode: "istio", LbWeight: 1,
			}
		}))
	}
	slices.SortFunc(out, registry.CompareEndpoints)
	return out
}

// BenchmarkAssignment builds an assignment of n endpoints after one of them changed.
func BenchmarkAssignment(b *testing.B) {
	svc := service(registry.ClientSideLB)
	for _, n := range []int{5, 100, 1_000, 10_000} {
		endpoints := benchEndpoints(n)
		changed := slices.Clone(endpoints)
		other := *changed[n/2]
		other.HealthStatus = registry.Draining
		changed[n/2] = &other
		b.Run(fmt.Sprintf("prepared/endpoints=%d", n), func(b *testing.B) {
			states := [][]*registry.Endpoint{changed, endpoints}
			p := xdsbuild.Prepare(svc.Ports[0], endpoints, nil)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				p = xdsbuild.Prepare(svc.Ports[0], states[i%2], p)
				if len(p.Encode(svc.Hostname, nil, envoy.ForEnvoy)) == 0 {
					b.Fatal("nothing")
				}
			}
		})
		b.Run(fmt.Sprintf("built/endpoints=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := proto.Marshal(xdsbuild.LoadAssignment(svc, svc.Ports[0], changed, envoy.ForEnvoy)); err != nil {
					b.Fatal(err)
				}
			}
		})
		// The limit: encoded endpoints are put one after the other.
		b.Run(fmt.Sprintf("limit/endpoints=%d", n), func(b *testing.B) {
			var parts [][]byte
			for _, e := range lbEndpoints(xdsbuild.LoadAssignment(svc, svc.Ports[0], endpoints, envoy.ForEnvoy)) {
				part, err := proto.Marshal(e)
				if err != nil {
					b.Fatal(err)
				}
				parts = append(parts, part)
			}
			b.ReportAllocs()
			for b.Loop() {
				size := 0
				for _, p := range parts {
					size += len(p) + 3
				}
				out := make([]byte, 0, size)
				for _, p := range parts {
					out = append(append(out, 0x12, byte(len(p)), 1), p...)
				}
				if len(out) == 0 {
					b.Fatal("nothing")
				}
			}
		})
	}
}
