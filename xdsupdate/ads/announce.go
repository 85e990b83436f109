// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"slices"
	"time"

	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/difference"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/reference"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/resource"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// A gRPC client asks for a cluster when a route names it, so that the server cannot send
// the cluster before. grpc-go uses the routes before its balancers know their clusters, and
// fails the calls in between (grpc-go 1.84: ClientConn.updateResolverStateAndUnlock). So
// routes that lead to clusters which the client's routes did not name are announced: the
// client is first sent the routes that it has, and behind them routes that match no call and
// name the clusters. It asks for those and their assignments, and when it has accepted all
// of them it is sent the routes.

// announcement is a route configuration with routes that match no call. It is guarded by
// the cache's mutex.
type announcement struct {
	// base is what the client had before, of what base is followed by; sent has the
	// routes of base and names the clusters, too.
	base, of, sent *resource.State
	clusters       []string
	// accepted is when the client was seen to have accepted it; zero: it has not.
	accepted time.Time
}

// announcementKey finds an announcement of one state of a route configuration to clients
// that have another one.
type announcementKey struct{ base, of *resource.State }

// announces sends what need not wait of new routes, and announces the rest. Not waits:
// nothing has to wait.
func (s *subscription) announces(update *difference.Content) (waits bool) {
	if s.typeURL != envoy.RouteType || s.wildcard() || !s.conn.asksByName() {
		return false
	}
	timeout := s.conn.cache.phaseTimeout
	if !s.waiting.IsZero() && !s.waiting.Add(timeout).After(time.Now()) {
		s.announced = nil
		s.conn.reportLate()
		return false
	}
	var list []*resource.State
	for _, r := range update.Listed {
		a := s.announcement(r)
		switch {
		case a == nil || s.isReady(a):
			delete(s.announced, r.Name)
			list = append(list, r)
			continue
		case a.sent != s.sent.Find(r.Name):
			list = append(list, a.sent)
		}
		waits = true
		if s.announced == nil {
			s.announced = make(map[string]*announcement)
		}
		s.announced[r.Name] = a
	}
	if !waits {
		s.announced = nil
		return false
	}
	if len(list) > 0 {
		s.sendSome(list, s.sent.WithAll(list), 0)
	}
	if s.waiting.IsZero() {
		s.waiting = time.Now()
	}
	s.conn.wakeAt(s.waiting.Add(timeout))
	return true
}

// reportLate has the responses reported that the client has not answered when they have
// been overdue, though nothing waits for them any more.
func (c *connection) reportLate() {
	for _, s := range c.order {
		if len(s.acks.Unanswered) > 0 && !s.acks.Unanswered[0].Overdue {
			c.wakeAt(s.acks.Unanswered[0].SentAt.Add(c.cache.phaseTimeout))
		}
	}
}

// announcement returns the announcement of a new state of a route configuration; nil: it
// needs none.
func (s *subscription) announcement(r *resource.State) *announcement {
	sent := s.sent.Find(r.Name)
	base, before := sent, s.announced[r.Name]
	if before != nil && before.sent == sent {
		base = before.base
		if before.of.Same(r) {
			return before
		}
	}
	if !base.IsPresent() || !r.References().Clusters.Exceed(base.References().Clusters) {
		return nil
	}
	a := s.selection.announcement(announcementKey{base, r})
	if base != sent && a != nil && a.sent.Same(sent) { // other routes to the same clusters
		a.sent, a.accepted = sent, before.accepted
	}
	return a
}

// announcement returns an announcement, which is made once for all clients of the selection;
// nil: it would be too large.
func (s *selection) announcement(key announcementKey) *announcement {
	a, found := s.announcements[key]
	if !found {
		if s.announcements == nil {
			s.announcements = make(map[announcementKey]announcement)
		}
		a = newAnnouncement(key.base, key.of)
		s.announcements[key] = a
	}
	if a.sent == nil {
		return nil
	}
	return &a
}

// newAnnouncement returns an announcement; its sent is nil if it would be too large.
func newAnnouncement(base, of *resource.State) announcement {
	a := announcement{base: base, of: of, clusters: reference.Clusters(of.TypeURL, of.Value, base.References().Clusters)}
	if value := reference.Announce(base.Value, a.clusters, difference.MaxBytes); value != nil {
		a.sent = &resource.State{TypeURL: base.TypeURL, Name: base.Name, Bytes: func() []byte { return value }}
		a.sent.Exists()
	}
	return a
}

// isReady reports whether the client has accepted an announcement and the clusters that it
// names, with their assignments.
func (s *subscription) isReady(a *announcement) bool {
	if s.sent.Find(a.sent.Name) != a.sent || s.acks.Awaits(a.sent.Name) {
		return false
	}
	now := time.Now()
	if a.accepted.IsZero() {
		a.accepted = now
	}
	asks := a.accepted.Add(resumeWait).After(now)
	if asks {
		s.conn.wakeAt(a.accepted.Add(resumeWait))
	}
	clusters, assignments := s.conn.subscriptions[envoy.ClusterType], s.conn.subscriptions[envoy.LoadAssignmentType]
	return !slices.ContainsFunc(a.clusters, func(name string) bool {
		cluster, coming := clusters.named(name, asks)
		if !coming && cluster.IsPresent() {
			if assignment := reference.AssignmentOf(name, cluster.Value); assignment != "" {
				_, coming = assignments.named(assignment, asks)
			}
		}
		return coming
	})
}

// named returns what the client has under a name, and whether it is to have something else
// that it has not accepted yet. asks: the client may still ask for it.
func (s *subscription) named(name string, asks bool) (r *resource.State, coming bool) {
	if s == nil || s.selection == nil || !s.selection.names(name) {
		return nil, asks
	}
	if s.selection.snapshot == nil || slices.Contains(s.selection.dirty, name) {
		return nil, true
	}
	r = s.sent.Find(name)
	return r, s.acks.Awaits(name) || s.target().Find(name).IsPresent() && !r.IsPresent()
}
