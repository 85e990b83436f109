// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
)

// TestList: List yields the names of Names, each with an answer like that of Lookup.
func TestList(t *testing.T) {
	s := newScene(t, traffic.Options{})
	var objects []string
	for i := range 4 {
		objects = append(objects, rivals(i))
	}
	s.apply(strings.Join(append(objects, `
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: passing, namespace: infra}
spec: {selector: {app: edge}, servers: [{hosts: ["*"], port: {number: 15443, name: tls, protocol: TLS}, tls: {mode: AUTO_PASSTHROUGH}}]}
`), "---\n"))
	grpc := in("sidecar", "ns0")
	grpc.UserAgentName = "gRPC Go"
	views := []ads.View{s.view(in("sidecar", "ns0")), s.view(in("router", "infra", "app=edge")), s.view(grpc)}
	lister := s.provided.last.(ads.Lister)
	listed := 0
	for _, v := range views {
		for _, typeURL := range []string{envoy.ClusterType, envoy.LoadAssignmentType, envoy.RouteType, envoy.ListenerType, "type.googleapis.com/another"} {
			names, only := lister.Names(v, typeURL)
			list, onlyListed := lister.List(v, typeURL)
			if only != onlyListed || (names == nil) != (list == nil) {
				t.Fatalf("%s: Names %t, List %t", typeURL, only, onlyListed)
			}
			if list == nil {
				continue
			}
			var got []string
			for name, a := range list {
				got = append(got, name)
				if want := lister.Lookup(v, typeURL, name); !sameAnswer(t, a, want) {
					t.Errorf("%s %s: List has %+v, Lookup %+v", typeURL, name, a, want)
				}
			}
			slices.Sort(got)
			if want := slices.Sorted(names); !slices.Equal(got, want) {
				t.Errorf("%s: List has %q, Names %q", typeURL, got, want)
			}
			listed += len(got)
		}
	}
	if listed < 40 {
		t.Errorf("only %d names", listed)
	}
}

func sameAnswer(t *testing.T, a, b ads.Answer) bool {
	t.Helper()
	if a.Next != b.Next || a.Share != b.Share || (a.Build == nil) != (b.Build == nil) || (a.StandIn == nil) != (b.StandIn == nil) {
		return false
	}
	if a.Build == nil {
		return true
	}
	built, err := a.Build()
	want, wanted := b.Build()
	return proto.Equal(built, want) && (err == nil) == (wanted == nil)
}
