// SPDX-License-Identifier: Apache-2.0

package sequence

import (
	"slices"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/acks"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/difference"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/reference"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/resource"
)

// removalRule delays the removal of clusters or assignments at a phased client: of all, or of each name that it
// holds for.
type removalRule struct {
	name string
	of   slot
	all  func(p *planner) bool
	each func(p *planner, name string) bool
}

// removalRules are all of them.
//
//nolint:gochecknoglobals // never changed
var removalRules = [...]removalRule{
	{name: "clusters stay while a client that has come back may subscribe to listeners and routes", of: clusters, all: (*planner).mayAsk},
	{name: "clusters stay until listeners and routes do without them", of: clusters, all: (*planner).isEarly},
	{name: "clusters that go later belong to a later removal", of: clusters, each: (*planner).goesLater},
	{name: "clusters stay while connections drain", of: clusters, each: (*planner).drains},
	{name: "assignments go after their clusters", of: assignments, each: (*planner).isInUse},
}

// keepsAll reports whether a rule holds for all removed clusters or assignments.
func (p *planner) keepsAll(of slot) bool {
	return slices.ContainsFunc(removalRules[:], func(r removalRule) bool { return r.of == of && r.all != nil && r.all(p) })
}

// keeps reports whether a rule holds for a removed name.
func (p *planner) keeps(of slot, name string) bool {
	return slices.ContainsFunc(removalRules[:], func(r removalRule) bool { return r.of == of && r.each != nil && r.each(p, name) })
}

// removal is a set of clusters that are removed together, when no listener and no route references
// them. It is immutable.
type removal struct {
	// target are the clusters that stay, because clusters that go later are not of this removal. seen is the last
	// snapshot whose clusters are all in target.
	target, seen *resource.Snapshot
	// epoch is the push that listeners and routes have to be of.
	epoch uint64
	since time.Time
	// passed means that something new was sent in its place.
	passed bool
}

func (p *planner) newRemoval() *removal {
	target := p.Clusters.Snapshot()
	return &removal{target: target, seen: target, epoch: p.now.Epoch, since: p.now.Time}
}

// with returns the removal without clusters that are sent.
func (r *removal) with(sent []*resource.State) *removal {
	next := *r
	next.target = r.target.WithAll(sent)
	return &next
}

// keep returns the removal without clusters that have come back: one that goes again is of a later
// removal, because newer listeners and routes may reference it. A cluster that the client was not sent is left out (see
// Client.note), or every name that ever was would be kept for a client that never answers.
func (r *removal) keep(t *Type) *removal {
	now := t.Snapshot()
	if r.seen == now {
		return r
	}
	var back []resource.Edit
	resource.Compare(r.target, now, func(old, now *resource.State) {
		if old == nil && now.IsPresent() && t.Has.Find(now.Name).IsPresent() {
			back = append(back, resource.Edit{Name: now.Name, Resource: now})
		}
	})
	next := *r
	next.seen, next.target = now, r.target.With(back)
	return &next
}

// removeFirst sends removals before new clusters, if it was the other way round the last time, so that
// clusters that come all the time do not delay removals.
func (p *planner) removeFirst() (s Step) {
	if p.m.removal == nil || !p.Clusters.Open {
		return s
	}
	if p.m.removal.passed {
		s = p.removeClusters()
	}
	if d := p.Clusters.Difference(); s.To == nil && p.m.removal != nil && d != nil && d.Update != nil {
		next := *p.m.removal
		next.passed, p.m.removal = true, &next
	}
	return s
}

// removeClusters begins a removal of clusters, and sends it when it is due.
func (p *planner) removeClusters() (s Step) {
	t, m := p.Clusters, &p.m
	if t.Resumed && m.returned.IsZero() {
		m.returned = p.now.Time
	}
	d := t.Difference()
	if d == nil || d.Removal == nil {
		m.removal = nil
		return s
	}
	if m.removal == nil {
		m.removal = p.newRemoval()
	}
	m.removal = m.removal.keep(t)
	for t.Open && !p.keepsAll(clusters) {
		s = p.removeDue(t, d)
		switch {
		case s.To != nil:
		case slices.ContainsFunc(d.Removal.Removed, p.goesLater):
			m.removal = p.newRemoval() // all its clusters have come back, or were removed again later
			continue
		default:
			m.linger(t)
		}
		m.removal = nil
		break
	}
	return s
}

// removeDue sends the removals of clusters or assignments that no rule delays.
func (p *planner) removeDue(t *Type, d *difference.Difference) Step {
	due := t.kind().NewContent(nil, nil, p.Traits(t))
	var edits []resource.Edit
	for _, name := range d.Removal.Removed {
		if !p.keeps(t.slot, name) {
			due.Removed, edits = append(due.Removed, name), append(edits, resource.Edit{Name: name})
		}
	}
	for _, r := range d.Removal.Listed {
		if !p.keeps(t.slot, r.Name) {
			due.Listed, edits = append(due.Listed, r), append(edits, resource.Edit{Name: r.Name, Resource: t.Snapshot().Find(r.Name)})
		}
	}
	switch {
	case d.Update == nil && (t.Returning || len(edits) == len(d.Removal.Removed)+len(d.Removal.Listed)):
		return Step{To: t, Content: d.Removal, After: d.Removal.After, Last: true, Ends: true}
	case len(edits) > 0:
		due.After = t.Has.With(edits)
		return Step{To: t, Content: due, After: due.After}
	}
	return Step{}
}

// goesLater reports whether the cluster belongs to a later removal, because it was removed after
// this one began.
func (p *planner) goesLater(name string) bool { return p.m.removal.target.Find(name) != nil }

// isEarly reports whether listeners and routes may lead to the clusters of a removal, and have time left.
func (p *planner) isEarly() bool {
	until := p.due()
	if p.isPast(until) || p.settled() {
		return false
	}
	p.lookAt(until)
	return true
}

// due returns until when a removal waits for the answers to listeners and routes, which may have waited for clusters
// before they were sent.
func (p *planner) due() time.Time {
	sent := p.m.removal.since
	last := sent.Add(p.Timeout) // they are sent by then; there may always be more
	for _, t := range p.Types {
		if reference.HasClusters(t.URL) && len(t.Acks.Unanswered) > 0 && t.Acks.Unanswered[0].SentAt.After(sent) {
			sent = t.Acks.Unanswered[0].SentAt
		}
	}
	if sent.After(last) {
		sent = last
	}
	return sent.Add(p.Timeout)
}

// settled reports whether listeners and routes are of the push of a removal, or a later one.
func (p *planner) settled() bool {
	return !slices.ContainsFunc(p.Types, func(t *Type) bool {
		return reference.HasClusters(t.URL) && t.Acks.Applied < p.m.removal.epoch && !p.m.Applied(t)
	})
}

// mayAsk reports whether a client that has come back may still subscribe to listeners and routes: Envoy does so at
// once after clusters.
func (p *planner) mayAsk() bool {
	if !p.Clusters.Resumed {
		return false
	}
	until := p.m.returned.Add(askWait)
	if p.isPast(until) || p.Listeners.selects() && p.Routes.selects() {
		return false
	}
	p.lookAt(until)
	return true
}

func (t *Type) selects() bool { return t != nil && t.Scope() != Nothing }

// drains reports whether connections may still use a cluster.
func (p *planner) drains(name string) bool {
	if len(p.m.draining) == 0 {
		return false
	}
	until, found := p.m.draining[xxhash.Sum64String(name)]
	if !found || p.isPast(until) {
		return false
	}
	p.lookAt(until)
	return true
}

// removeAssignments sends the removal of assignments, with their clusters.
func (p *planner) removeAssignments() (s Step) {
	t := p.Assignments
	d := t.Difference()
	if !t.Open || d == nil || d.Update != nil || d.Removal == nil {
		return s
	}
	if s = p.removeDue(t, d); s.To == nil && !p.changesClusters() {
		p.m.linger(t)
	}
	return s
}

// isInUse reports whether the client may use an assignment for a cluster. It may while it is not known
// which clusters the client is to have.
func (p *planner) isInUse(name string) bool {
	if !p.Assignments.Has.Find(name).IsPresent() {
		return false
	}
	for cluster := range p.Clusters.Has.ClustersOf(name) {
		if now := p.Clusters.Snapshot(); now == nil || p.changesClusters() || !now.Find(cluster.Name).IsPresent() {
			return true
		}
	}
	return false
}

// changesClusters reports whether the answer to clusters is awaited.
func (p *planner) changesClusters() bool {
	return slices.ContainsFunc(p.Clusters.Acks.Unanswered, func(o acks.Response) bool { return !p.isOverdue(&o) })
}
