// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"sync"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/proto"

	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
)

// recorder is the provider of a server, which keeps what it provided last: for tests and
// benchmarks of what clients do not see, which is what they share, and what it costs.
type recorder struct {
	*traffic.Policies
	mu   sync.Mutex
	last ads.Provided
	// changes are what differs between last and its predecessor.
	changes ads.Changes
}

// Provide implements ads.Provider.
func (r *recorder) Provide(push *ads.PushContext) (ads.Provided, ads.Changes) {
	provided, changes := r.Policies.Provide(push)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last, r.changes = provided, changes
	return provided, changes
}

func (r *recorder) lookup(v ads.View, typeURL, name string) ads.Answer {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last.Lookup(v, typeURL, name)
}

// view returns the view of a client.
func (s *scene) view(n *core.Node) ads.View {
	s.t.Helper()
	n = s.numbered(n)
	c := s.connect(n)
	defer c.Close()
	s.must(c.Subscribe(envoy.ClusterType, "*"))
	s.answered(c)
	return s.status(n).View
}

// build makes a resource as for a client that is subscribed to it.
func (s *scene) build(v ads.View, typeURL, name string) proto.Message {
	s.t.Helper()
	m, err := s.provided.lookup(v, typeURL, name).Build()
	s.must(err)
	if m == nil {
		s.t.Fatalf("nothing is built of %s", name)
	}
	return m
}
