// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"maps"
	"slices"
	"time"

	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/acks"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/difference"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/reference"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/resource"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// A client that subscribes to all clusters, as Envoy does, is brought from one moment to
// the next in phases, so that it loses no request while traffic moves:
//
//  1. new and changed clusters and their assignments. Envoy answers clusters when they
//     can be used: what names a cluster that is new to the client waits for that answer.
//  2. listeners and route configurations. A route configuration that gives up domains
//     comes after the listeners that take them elsewhere.
//  3. what has gone, when listeners and routes that do without it are accepted.
//
// What waits, and for what, is decided for each resource, from the names in it: what needs
// no new cluster is sent at once. Nothing waits for longer than Options.PhaseTimeout, nor
// for clusters of others that cannot be resolved: see answerWait.
//
// There is no queue. A client that waits keeps the snapshots that it has, and one more
// for each type, that which it waits to be sent: so it gets there even if there is
// always a newer one that has to wait, too.

// phases are what a connection waits for. All of it is guarded by the cache's mutex.
type phases struct {
	// alarm flushes the connection when something has waited long enough.
	alarm alarm
	// removal is what clusters and assignments are to be removed; nil: none.
	removal *removal
	// draining are the clusters, by the hashes of their names, that listeners have sent
	// connections to, or routes calls of a gRPC client, and do not any more, and until when
	// they stay.
	draining map[uint64]time.Time
	// awaited are the route configurations that a changed listener needs before it is used,
	// since awaitedSince.
	awaited      []string
	awaitedSince time.Time
	// switching: listeners were sent in another state than the client has. switched is when
	// it last said that it uses such ones.
	switching bool
	switched  time.Time
	// tightened are route configurations of which listeners were sent that refuse more
	// requests, until the client uses these.
	tightened []string
	// resumed is when a client came back that says what it has.
	resumed time.Time
}

// switchTime is how long route configurations keep domains that changed listeners take
// elsewhere: an Envoy 1.40 answers listeners before its threads have them, and one that is
// late has the former listener accept a connection and takes the new one, and the routes,
// before the first request comes on it. Of that Envoy says 421, to a client that has just
// connected anew because of a 421.
const switchTime = 50 * time.Millisecond

// lingering is the difference between two snapshots that is not sent before time has
// passed: WaitApplied does not wait for it.
type lingering struct{ from, to *resource.Snapshot }

// phased reports whether changes come in phases: a client that asks for clusters by name
// asks for those that its routes name.
func (c *connection) phased() bool {
	clusters := c.subscriptions[envoy.ClusterType]
	return clusters != nil && clusters.wildcard()
}

// overdue reports whether a response has not been answered for too long.
func (c *cache) overdue(o *acks.Response, now time.Time) bool {
	return now.Sub(o.SentAt) >= c.phaseTimeout
}

// sends notes that listeners are sent, of which there were others before.
func (s *subscription) sends(c *difference.Content, from *resource.Snapshot) {
	if s.typeURL != envoy.ListenerType || from.List.Len() == 0 || !s.conn.phased() {
		return
	}
	p, delay, now := &s.conn.phases, s.conn.cache.removalDelay, time.Now()
	var left []uint64
	routes := s.conn.subscriptions[envoy.RouteType]
	for _, r := range c.Listed {
		p.tightened = append(p.tightened, from.Find(r.Name).References().Tightened(r.References())...)
		p.switching = p.switching || from.Find(r.Name) != nil || len(p.tightened) > 0
		for _, name := range r.References().Routes {
			if routes == nil || routes.sent.Find(name) == nil {
				p.awaited, p.awaitedSince = append(p.awaited, name), now
			}
		}
		if delay > 0 {
			left = from.Find(r.Name).References().Clusters.Without(left, r.References().Clusters)
		}
	}
	if delay > 0 {
		for _, name := range c.Removed {
			left = from.Find(name).References().Clusters.Without(left, nil)
		}
	}
	p.stopAwaiting(c.After)
	s.conn.drain(left, delay)
}

// stopAwaiting forgets route configurations that no listener needs any more: a client that
// is sent listeners faster than their routes never asks for those in between.
func (p *phases) stopAwaiting(listeners *resource.Snapshot) {
	if len(p.awaited) == 0 {
		return
	}
	needed := make(map[string]bool)
	for r := range listeners.List.All() {
		for _, name := range r.References().Routes {
			needed[name] = true
		}
	}
	p.awaited = slices.DeleteFunc(p.awaited, func(name string) bool { return !needed[name] })
}

// uses notes that the client uses what a response has brought.
func (s *subscription) uses(o *acks.Response) {
	p := &s.conn.phases
	if s.typeURL == envoy.ListenerType && p.switching && len(o.Listed) > 0 {
		p.switching, p.switched = len(s.acks.Unanswered) > 0, time.Now()
	}
}

// drain has clusters stay for some time that are not to be used any more.
func (c *connection) drain(clusters []uint64, delay time.Duration) {
	if len(clusters) == 0 {
		return
	}
	p, now := &c.phases, time.Now()
	if p.draining == nil {
		p.draining = make(map[uint64]time.Time)
	}
	maps.DeleteFunc(p.draining, func(_ uint64, until time.Time) bool { return !until.After(now) })
	for _, hash := range clusters {
		p.draining[hash] = now.Add(delay)
	}
}

// wakeAt has the connection flushed at a time; zero: not at all.
func (c *connection) wakeAt(at time.Time) {
	if at.IsZero() {
		return
	}
	c.phases.alarm.set(c, at, func() func() {
		if c.closed {
			return nil
		}
		late := c.late()
		c.flush()
		c.cache.progressed()
		return late
	})
}

// isWaitedFor reports whether something may wait for answers to responses of the type.
func (s *subscription) isWaitedFor() bool {
	return s.typeURL == envoy.ClusterType || reference.HasClusters(s.typeURL) || s.typeURL == envoy.LoadAssignmentType && !s.conn.phased()
}

// late returns what reports the responses that what comes after them has waited for long
// enough; nil: there are none that were not reported.
func (c *connection) late() (report func()) {
	var types []string
	now := time.Now()
	for _, s := range c.order {
		if !s.isWaitedFor() || len(s.acks.Unanswered) == 0 {
			continue
		}
		if o := &s.acks.Unanswered[0]; !o.Overdue && c.cache.overdue(o, now) {
			o.Overdue = true
			types = append(types, s.typeURL)
		}
	}
	if types == nil {
		return nil
	}
	return func() { c.stream.overdue(types, c.cache.phaseTimeout) }
}
