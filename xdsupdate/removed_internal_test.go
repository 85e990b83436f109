// SPDX-License-Identifier: Apache-2.0

package xdsupdate

import (
	"testing"

	"github.com/pilotkit/pilotkit/registry"
)

// A service that one update adds and empties is not kept in the index.
func TestServiceThatStaysEmptyIsNotKept(t *testing.T) {
	x, name := NewEndpointIndex(), serviceName{"a", "ns"}
	shard := ShardKey{Cluster: "c1", Provider: registry.External}
	e := &registry.Endpoint{Addresses: []string{"10.0.0.1"}}
	x.UpdateEndpoints(shard, "a", "ns", []EndpointChange{{New: e}, {Old: e}})
	if x.find(name) != nil {
		t.Error("a service without a state is in the index")
	}
	x.UpdateServiceEndpoints(shard, "a", "ns", []*registry.Endpoint{e})
	if n := x.Service("a", "ns").Len(); n != 1 {
		t.Errorf("%d endpoints afterwards, want 1", n)
	}
}
