// SPDX-License-Identifier: Apache-2.0

package xdsupdate

import (
	"testing"

	"github.com/pilotkit/pilotkit/registry"
)

// A writer that found a service before it was removed does not touch the one that has
// come into its place.
func TestRemovedServiceIsNotRemovedAgain(t *testing.T) {
	x, name := NewEndpointIndex(), serviceName{"a", "ns"}
	shard := ShardKey{Cluster: "c1", Provider: registry.External}
	list := []*registry.Endpoint{{Addresses: []string{"10.0.0.1"}}}
	x.UpdateServiceEndpoints(shard, "a", "ns", list)
	found := x.services.find(name).service
	x.RemoveShard(shard)
	x.UpdateServiceEndpoints(shard, "a", "ns", list)
	if found.removeShard(x.services, name, x.writer(shard, right{}), nil) {
		t.Error("a removed service has lost endpoints")
	}
	if _, ok := found.write(x.services, name, x.writer(shard, right{}), update{list: list}); ok {
		t.Error("a removed service was written to")
	}
	if n := x.Service("a", "ns").Len(); n != 1 {
		t.Errorf("the service that came has %d endpoints, want 1", n)
	}
}

// A service that one update adds and empties is not kept in the directory.
func TestServiceThatStaysEmptyIsNotKept(t *testing.T) {
	x, name := NewEndpointIndex(), serviceName{"a", "ns"}
	shard := ShardKey{Cluster: "c1", Provider: registry.External}
	e := &registry.Endpoint{Addresses: []string{"10.0.0.1"}}
	x.UpdateEndpoints(shard, "a", "ns", []EndpointChange{{New: e}, {Old: e}})
	if x.services.find(name) != nil {
		t.Error("a service without a state is in the directory")
	}
	x.UpdateServiceEndpoints(shard, "a", "ns", []*registry.Endpoint{e})
	if n := x.Service("a", "ns").Len(); n != 1 {
		t.Errorf("%d endpoints afterwards, want 1", n)
	}
}
