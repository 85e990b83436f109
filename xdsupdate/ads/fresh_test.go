// SPDX-License-Identifier: Apache-2.0

package ads_test

import (
	"bytes"
	"maps"
	"slices"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

// equalsFresh compares the resources of a fleet, byte for byte, with those of new clients of
// another server, which was given the same world.
func equalsFresh(tb testing.TB, w *churnWorld, fleet []*member) {
	tb.Helper()
	fresh := serve(tb, ads.Options{}, w.list()...)
	if w.sockets {
		fresh.address()
	}
	for host, endpoints := range w.endpoints {
		fresh.EDSCacheUpdate(shard, registry.Hostname(host), "shop", endpoints)
	}
	fresh.ConfigUpdate(&xdsupdate.PushRequest{Full: true})
	fresh.flush()
	for _, m := range fleet {
		if err := m.client.Err(); err != nil {
			tb.Errorf("%s: stream ended: %v", m.name, err)
			continue
		}
		twin := &member{f: fresh, name: m.name, delta: m.delta, grpc: m.grpc, all: m.all, hosts: m.hosts}
		twin.connect(true)
		var diff []string
		equal := wait(freshPatience, func() bool {
			diff = differences(tb, m.client.State(), twin.client.State(), m.grpc)
			return len(diff) == 0
		})
		if !equal {
			tb.Fatalf("%s (delta: %t, gRPC: %t, manner %d) has %d resources otherwise than a client of a fresh server: %q",
				m.name, m.delta, m.grpc, m.manner, len(diff), diff[:min(5, len(diff))])
		}
		twin.disconnect()
	}
}

// freshPatience is how long a client may lag behind: it may have come when
// WaitApplied was called already.
const freshPatience = time.Minute

// differences returns the differences between the resources of a client and those of a new one. A
// gRPC client keeps the listener, the route and the cluster of a removed service, without
// endpoints.
func differences(tb testing.TB, old, fresh xdstest.State, grpc bool) []string {
	tb.Helper()
	var out []string
	for _, typeURL := range []string{envoy.ClusterType, envoy.LoadAssignmentType, envoy.ListenerType, envoy.RouteType} {
		was, is := old.Resources(typeURL), fresh.Resources(typeURL)
		all := maps.Clone(was)
		maps.Copy(all, is)
		for _, name := range slices.Sorted(maps.Keys(all)) {
			a, b := was[name], is[name]
			switch {
			case a.Any != nil && b.Any != nil && bytes.Equal(a.Any.GetValue(), b.Any.GetValue()):
			case typeURL == envoy.LoadAssignmentType && unused(tb, a, old) && unused(tb, b, fresh):
			case grpc && typeURL != envoy.LoadAssignmentType && b.Any == nil:
			default:
				out = append(out, short(typeURL)+" "+name)
			}
		}
	}
	return out
}

// unused reports whether an assignment is missing, is empty, or is of a cluster
// that is not there or takes its endpoints from elsewhere: SotW cannot take those
// away.
func unused(tb testing.TB, assignment xdstest.Resource, s xdstest.State) bool {
	tb.Helper()
	if assignment.Any == nil {
		return true
	}
	of, ok := s.Resources(envoy.ClusterType)[assignment.Name]
	if !ok {
		return true
	}
	var cluster clusterv3.Cluster
	var load endpointv3.ClusterLoadAssignment
	if err := of.Any.UnmarshalTo(&cluster); err != nil {
		tb.Fatal(err)
	}
	if err := assignment.Any.UnmarshalTo(&load); err != nil {
		tb.Fatal(err)
	}
	return len(load.GetEndpoints()) == 0 || cluster.GetType() != clusterv3.Cluster_EDS
}
