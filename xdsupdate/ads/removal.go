// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"slices"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/reference"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/resource"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// removal are resources that go when no listener and no route names them any more.
type removal struct {
	// target has what stays: what goes later is not of this removal.
	target *resource.Snapshot
	seen   *resource.Snapshot // the last one of which target has all
	// epoch is that which listeners and routes have to be of.
	epoch uint64
	since time.Time
	// passed: something new was sent in its place.
	passed bool
}

// settled reports whether listeners and routes are of an epoch, or later.
func (c *connection) settled(epoch uint64) bool {
	return !slices.ContainsFunc(c.order, func(s *subscription) bool {
		return reference.HasClusters(s.typeURL) && s.acks.Applied < epoch && !s.applied()
	})
}

// resumeWait is how long a client that comes back to the server may take to ask for
// listeners and routes after clusters: Envoy does so at once.
const resumeWait = time.Second

// asksLater reports whether a client that has come back may still ask for listeners and
// routes.
func (c *connection) asksLater(clusters *subscription, now time.Time) bool {
	if !clusters.resumed {
		return false
	}
	if c.phases.resumed.IsZero() {
		c.phases.resumed = now
	}
	if !c.phases.resumed.Add(resumeWait).After(now) {
		return false
	}
	listeners, routes := c.subscriptions[envoy.ListenerType], c.subscriptions[envoy.RouteType]
	if listeners != nil && listeners.selection != nil && routes != nil && routes.selection != nil {
		return false
	}
	c.wakeAt(c.phases.resumed.Add(resumeWait))
	return true
}

// remove sends what clusters and assignments have gone, when nothing may name them any
// more.
func (c *connection) remove() {
	clusters := c.subscriptions[envoy.ClusterType]
	c.removeClusters(clusters)
	if assignments := c.subscriptions[envoy.LoadAssignmentType]; assignments != nil {
		c.removeAssignments(clusters, assignments)
	}
}

// removeFirst sends what has gone before what is new, if that was the other way round the
// last time: clusters that come all the time do not keep those that go.
func (c *connection) removeFirst() {
	clusters, r := c.subscriptions[envoy.ClusterType], c.phases.removal
	if r == nil || !clusters.open {
		return
	}
	if r.passed {
		c.removeClusters(clusters)
	}
	if d := clusters.difference(); d != nil && d.Update != nil && clusters.open {
		r.passed = true
	}
}

// removeClusters begins the removal of what has gone, and sends it when it is due.
func (c *connection) removeClusters(clusters *subscription) {
	p, now := &c.phases, time.Now()
	later := c.asksLater(clusters, now)
	d := clusters.difference()
	if d == nil || d.Removal == nil {
		p.removal = nil
		return
	}
	if p.removal == nil {
		p.removal = c.newRemoval(clusters, now)
	}
	p.removal.keep(clusters)
	for clusters.open && !later && c.isDue(p.removal, now) {
		if c.removeOf(clusters, p.removal.target, now) {
			p.removal = nil
			return
		}
		p.removal = c.newRemoval(clusters, now) // all of it has come back, or has gone later
	}
}

func (c *connection) newRemoval(clusters *subscription, now time.Time) *removal {
	return &removal{target: clusters.target(), seen: clusters.target(), epoch: c.cache.epoch, since: now}
}

// keep has what there is now stay, of what the client has: what comes back, and goes once
// more, is of a later removal, because newer listeners and routes may name it. What the
// client has not been sent is left out, or a client that never answers would have every
// name kept that ever was (subscription.answer adds what it is sent later).
func (r *removal) keep(clusters *subscription) {
	now := clusters.target()
	if r.seen == now {
		return
	}
	r.seen = now
	var back []resource.Edit
	resource.Compare(r.target, now, func(old, now *resource.State) {
		if old == nil && now.IsPresent() && clusters.sent.Find(now.Name).IsPresent() {
			back = append(back, resource.Edit{Name: now.Name, Resource: now})
		}
	})
	r.target = r.target.With(back)
}

// removalDue returns until when what has gone since some time waits for the answers to
// listeners and routes, which may have waited for clusters before they were sent.
func (c *connection) removalDue(since time.Time) time.Time {
	timeout := c.cache.phaseTimeout
	last, sent := since.Add(timeout), since // they are sent by then; there may always be more
	for _, s := range c.order {
		if reference.HasClusters(s.typeURL) && len(s.acks.Unanswered) > 0 && s.acks.Unanswered[0].SentAt.After(sent) {
			sent = s.acks.Unanswered[0].SentAt
		}
	}
	if sent.After(last) {
		sent = last
	}
	return sent.Add(timeout)
}

// isDue reports whether listeners and routes do without what goes, or have had their time.
func (c *connection) isDue(r *removal, now time.Time) bool {
	until := c.removalDue(r.since)
	if !until.After(now) || c.settled(r.epoch) {
		return true
	}
	c.wakeAt(until)
	return false
}

// removeOf sends what has gone of a type that target does not have, but for what
// connections still use. It reports whether there is such.
func (c *connection) removeOf(clusters *subscription, target *resource.Snapshot, now time.Time) bool {
	d := clusters.difference()
	var due []string
	kept := false
	for _, name := range d.Removal.Removed {
		switch {
		case target.Find(name) != nil:
			kept = true // it has gone since
		case c.isDraining(name, now):
		default:
			due = append(due, name)
		}
	}
	switch {
	case d.Update == nil && (clusters.returning || len(due) == len(d.Removal.Removed)):
		clusters.removals()
	case len(due) > 0:
		part := clusters.state().NewContent(nil, clusters.traits())
		part.Removed, part.After = due, clusters.sent.Without(due)
		clusters.answer(part, part.After, false)
	case kept:
		return false
	default:
		clusters.lingering = lingering{clusters.sent, clusters.target()}
	}
	return true
}

// isDraining reports whether connections may still use a cluster.
func (c *connection) isDraining(name string, now time.Time) bool {
	if len(c.phases.draining) == 0 {
		return false
	}
	hash := xxhash.Sum64String(name)
	until, found := c.phases.draining[hash]
	switch {
	case !found:
		return false
	case until.After(now):
		c.wakeAt(until)
		return true
	default:
		delete(c.phases.draining, hash)
		return false
	}
}

// answersGone sees to it that a SotW client is answered about assignments of clusters that
// it was sent and that have gone since: it waits for them, and for all clusters that came with
// them, and the protocol has no other answer.
func (s *subscription) answersGone(come []*topic) {
	if s.typeURL != envoy.LoadAssignmentType || s.conn.delta || !s.conn.phased() {
		return
	}
	clusters := s.conn.subscriptions[envoy.ClusterType]
	if clusters.selection.snapshot == nil || clusters.sent == clusters.target() {
		return
	}
	var edits []resource.Edit
	for _, t := range come {
		if s.sent.Find(t.Name) == nil && clusters.sent.Find(t.Name).IsPresent() && !clusters.target().Find(t.Name).IsPresent() {
			edits = append(edits, resource.Edit{Name: t.Name, Resource: resource.NewMarker(s.typeURL, t.Name, resource.Unknown)})
		}
	}
	s.has(s.sent.With(edits))
}

// removeAssignments sends what assignments have gone, with their clusters.
func (c *connection) removeAssignments(clusters, s *subscription) {
	if !s.open {
		return
	}
	d := s.difference()
	if d == nil || d.Update != nil || d.Removal == nil {
		return
	}
	var edits []resource.Edit
	part := s.state().NewContent(nil, s.traits())
	now, changing := time.Now(), false
	for i := range clusters.acks.Unanswered {
		changing = changing || !c.cache.overdue(&clusters.acks.Unanswered[i], now)
	}
	inUse := func(name string) bool {
		return s.sent.Find(name).IsPresent() && clusters.sent.Find(name).IsPresent() &&
			(changing || !clusters.target().Find(name).IsPresent())
	}
	for _, name := range d.Removal.Removed {
		if !inUse(name) {
			part.Removed, edits = append(part.Removed, name), append(edits, resource.Edit{Name: name})
		}
	}
	for _, r := range d.Removal.Listed {
		if !inUse(r.Name) {
			part.Listed, edits = append(part.Listed, r), append(edits, resource.Edit{Name: r.Name, Resource: s.target().Find(r.Name)})
		}
	}
	switch {
	case s.returning || len(edits) == len(d.Removal.Removed)+len(d.Removal.Listed):
		s.removals()
	case len(edits) > 0:
		part.After = s.sent.With(edits)
		s.answer(part, part.After, false)
	case !changing:
		s.lingering = lingering{s.sent, s.target()}
	}
}
