// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"slices"
	"sync"
	"time"

	"github.com/pilotkit/pilotkit/internal/guard"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/failure"
)

// A change becomes responses in these steps:
//
//  1. The Pusher merges requests, captures the input of a push (capture), and calls push, one call
//     at a time.
//  2. push asks the providers for their resources and the possible differences, first the provider
//     of services, which rebuilds the hosts of the request. All of them read one PushContext. The
//     results are immutable layers.
//  3. publish finds the affected selections in the reverse index of the subscribed names. A change
//     without subscribers ends here.
//  4. The changed resources of these selections are built and encoded, once for all views that
//     share them, without the lock. Each selection gets a new snapshot if its content differs.
//  5. The planner (internal/sequence) plans the responses to the subscribers of these selections. A
//     response is the difference between the client's snapshot and that of the selection; clients
//     with the same two snapshots share the difference and its encoding.
//  6. The stream sends the responses in its queue without the lock.
//
// A request takes the opposite way: its names are compared with those of the previous request, as
// bytes. If they differ, the subscription moves to another selection, or a selection of its own is
// renamed. A new selection is added to the index, in parts; then its first subscription prepares
// the snapshot, without the lock.

// everything returns a request to compare all services with the discovery.
func everything() *xdsupdate.PushRequest {
	return &xdsupdate.PushRequest{Full: true, Forced: true}
}

// push rebuilds and publishes the state that a request names. A later push makes up for a panic.
func (s *Server) push(req *xdsupdate.PushRequest) {
	begun := time.Now()
	if p := guard.Call(func() { req = s.build(req, begun) }); p != nil {
		s.cache.failures.Undone(failure.Part{In: failure.InPush}.Wrap(p))
	}
	s.reportFailures()
	s.observing(func(o Observer) {
		o.Pushed(PushEvent{Request: req, Waited: waited(req, begun), Took: time.Since(begun)})
	})
}

// build rebuilds and publishes the state that a request names, and returns the request that was
// pushed.
func (s *Server) build(req *xdsupdate.PushRequest, begun time.Time) *xdsupdate.PushRequest {
	s.building.Lock()
	defer s.building.Unlock()
	if !s.built {
		start := req.Start
		req = everything()
		req.Start = start
	}
	s.rebuild(req, begun)
	return req
}

func waited(req *xdsupdate.PushRequest, now time.Time) time.Duration {
	if req.Start.IsZero() {
		return 0
	}
	return max(0, now.Sub(req.Start))
}

// The functions below are called with building held. Only they replace the layers, so they read the
// layers without the cache's lock.

// rebuild rebuilds and publishes the state that a request names.
func (s *Server) rebuild(req *xdsupdate.PushRequest, begun time.Time) {
	push := &PushContext{Request: req, moment: s.moment}
	push.sorted = sync.OnceValue(func() []*registry.Service {
		return slices.SortedStableFunc(push.table.Services(), registry.CompareServices)
	})
	ch := &change{since: begun, about: hintsOf(req.ConfigsUpdated), unsure: s.unsure.Swap(false)}
	if !req.Start.IsZero() {
		ch.since = req.Start
	}
	if !s.provide(push, ch) {
		return // a response from an empty state would remove all resources of proxies
	}
	s.cache.publish(ch)
	s.services.Published(push.Request.Everything())
	if slices.ContainsFunc(ch.changes, func(c Changes) bool { return c.Regroup }) {
		s.ReviewProxies(nil)
	}
}
