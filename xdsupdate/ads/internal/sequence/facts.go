// SPDX-License-Identifier: Apache-2.0

package sequence

import (
	"slices"
	"time"

	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/reference"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/resource"
)

// answerWait is how long newer clusters wait for the answer to older ones.
//
// Envoy ACKs clusters when all of them can be used. A cluster whose DNS server does not answer delays the ACK for
// more than a minute (c-ares asks four times, for 5, 10, 20 and 40 seconds), but Envoy takes further clusters
// meanwhile, so clusters of other tenants do not wait for that one.
const answerWait = 500 * time.Millisecond

// resolveWait bounds how long resources wait that reference a cluster which Envoy resolves, if the
// ACK is late. It bounds the wait for all such clusters together, because the same resource may
// have routes of others.
const resolveWait = 2 * time.Second

// findComing finds the clusters that the client cannot use yet.
func (f *facts) findComing() {
	t := f.Clusters
	if t.Snapshot() == nil {
		f.unknown = true // until the first push, or until names are decoded
		return
	}
	late := false
	for i := range t.Acks.Unanswered {
		o := &t.Acks.Unanswered[i]
		if f.isOverdue(o) {
			late = true
			continue
		}
		f.by(o.SentAt.Add(f.Timeout))
		if len(o.Fresh) > 0 {
			f.coming = append(f.coming, f.unusable(i))
		}
	}
	if late && !f.takesUnanswered(t) { // the rest, too
		return
	}
	f.unknown = len(t.Apart) > 0
	if d := t.Difference(); d != nil && d.Update != nil {
		f.unknown = f.unknown || d.More
		f.coming = append(f.coming, d.Update.Fresh)
	}
}

// unusable returns the clusters of an unanswered response that the client cannot use yet. If the answer to it, or to
// an earlier one, is late, then clusters with accepted endpoints are usable, and clusters that Envoy resolves are after
// resolveWait.
func (f *facts) unusable(i int) reference.ClusterNames {
	o := &f.Clusters.Acks.Unanswered[i]
	if late := o.SentAt.Add(answerWait); i == 0 && !f.isPast(late) {
		f.by(late)
		return o.Fresh
	}
	resolved := earlier(o.SentAt, f.m.of(f.of).since).Add(resolveWait)
	if !f.isPast(resolved) {
		f.by(resolved)
	}
	eds := f.Assignments
	var out reference.ClusterNames
	for _, n := range o.Fresh {
		switch r := o.Find(n.Name); {
		case r != nil && eds != nil && eds.Has.Find(r.Assignment()).IsPresent() && !eds.Acks.Awaits(r.Assignment()):
		case r != nil && !reference.IsEDS(r.Value) && f.isPast(resolved):
		default:
			out = append(out, n)
		}
	}
	return out
}

// sendsUnanswered reports whether new clusters are sent though the answer to older ones is late, once in answerWait.
func (p *planner) sendsUnanswered(t *Type) bool {
	n := len(t.Acks.Unanswered)
	if t != p.Clusters || n == 0 || !p.Phased() || !p.takesUnanswered(t) || !t.updating() {
		return false
	}
	due := t.Acks.Unanswered[n-1].SentAt.Add(answerWait)
	if !p.isPast(due) {
		p.lookAt(due)
		return false
	}
	return true
}

// takesUnanswered reports whether clusters may be sent without an answer to others: not to a client that does
// not read, nor while it is found out which clusters it rejects.
func (p *planner) takesUnanswered(t *Type) bool {
	return len(p.Queue) == 0 && !t.Acks.Full() && len(t.Apart) == 0
}

// Filters of listeners restrict the callers, and route configurations the destinations. If both change at once and
// listeners become stricter, the routes come when the client uses the listeners: new routes are never served without
// their protection. If listeners only become less strict, routes come first, even if they give up domains, because
// routes that lose their protection have to be gone by then. A client that rejects stricter listeners keeps its routes.

// switchTime is how long route configurations keep domains that changed listeners take elsewhere: an Envoy 1.40 ACKs
// listeners before its threads have them. A thread that is late has the former listener accept a connection, and takes
// the new one, and the routes, before the first request on it. Envoy answers that request with 421, to a client that
// has just connected again because of a 421.
const switchTime = 50 * time.Millisecond

// changesListeners reports whether there are new or changed listeners that the client does not use
// yet: they were not sent, not answered, or need routes that it does not have.
func (f *facts) changesListeners() bool {
	if f.Listeners == nil {
		return false
	}
	unanswered, late := f.unanswered(f.Listeners)
	return unanswered || !late && (f.Listeners.updating() || f.awaitsRoutes() || f.switches())
}

// unanswered reports whether a response waits for its answer, or one is late.
func (f *facts) unanswered(t *Type) (waits, late bool) {
	for i := range t.Acks.Unanswered {
		o := &t.Acks.Unanswered[i]
		if !f.isOverdue(o) {
			f.by(o.SentAt.Add(f.Timeout))
			return true, late
		}
		late = true
	}
	return false, late
}

// switches reports whether threads of the client may not have taken the last listeners yet.
func (f *facts) switches() bool {
	until := f.m.switched.Add(switchTime)
	if f.isPast(until) {
		return false
	}
	f.by(until)
	return true
}

// awaitsRoutes reports whether the client has not been sent, or has not answered, the routes of a
// changed listener.
func (f *facts) awaitsRoutes() bool {
	m := &f.m
	if len(m.awaited) == 0 {
		return false
	}
	until := m.awaitedSince.Add(f.Timeout)
	if f.Routes == nil || f.isPast(until) {
		m.awaited = nil
		return false
	}
	m.awaited = slices.DeleteFunc(slices.Clone(m.awaited), func(name string) bool {
		return f.Routes.Has.Find(name) != nil && !f.Routes.Acks.Awaits(name)
	})
	f.by(until)
	if len(m.awaited) == 0 {
		m.switched = f.now.Time
	}
	return len(m.awaited) > 0
}

// comingRoutes returns the sorted names of route configurations that the client needs in a newer
// state before listeners send requests there.
func (f *facts) comingRoutes() (names []string) {
	t := f.Routes
	if t == nil || t.Scope() == Nothing {
		return nil
	}
	if t.Snapshot() == nil {
		// Any routes behind listeners that become less strict may have to go first.
		f.findTightened()
		return f.loosened
	}
	if len(t.Acks.Unanswered) > 0 {
		if f.isOverdue(&t.Acks.Unanswered[0]) {
			return nil
		}
		f.by(t.Acks.Unanswered[0].SentAt.Add(f.Timeout))
	}
	if d := t.Difference(); d == nil || d.Update == nil {
		return nil
	}
	f.findTightened()
	f.rejected = f.rejectedTightened()
	t.changed(func(r *resource.State) {
		switch {
		case f.isRejected(r):
		case isIn(f.loosened, r.Name): // even if it waits for a stricter listener that was sent before
			names = append(names, r.Name)
		case f.isTightened(r): // it waits for listeners itself
		case f.leadsToComing(r) || !f.givesUpDomains(r):
			names = append(names, r.Name)
		}
	})
	return names
}

// findTightened finds the route configurations whose listeners become stricter, or less strict.
func (f *facts) findTightened() {
	t := f.Listeners
	if f.Timeout <= 0 || t == nil {
		return
	}
	if f.unlisted = t.Snapshot() == nil && t.Scope() != Nothing; t.Snapshot() == nil {
		return
	}
	t.changed(func(r *resource.State) {
		before, now := t.Has.Find(r.Name).References(), r.References()
		f.tightened = append(f.tightened, before.Tightened(now)...)
		f.loosened = append(f.loosened, now.Tightened(before)...) // also by a new listener, which may replace another
	})
	f.loosened = slices.DeleteFunc(f.loosened, func(name string) bool { return slices.Contains(f.tightened, name) })
	f.tightened = append(f.tightened, f.stillTightened()...)
	slices.Sort(f.tightened)
	slices.Sort(f.loosened)
}

// stillTightened returns the route configurations whose stricter listeners were sent, and forgets them when the
// client uses the listeners, or has not answered for too long.
func (f *facts) stillTightened() []string {
	if len(f.m.tightened) == 0 {
		return nil
	}
	unanswered, late := f.unanswered(f.Listeners)
	if !unanswered && (late || !f.awaitsRoutes() && !f.switches()) && len(f.rejectedTightened()) == 0 {
		f.m.tightened = nil
	}
	return f.m.tightened
}

// rejectedTightened returns the route configurations, sorted, whose stricter listeners the client rejects, so that it
// goes on with less strict ones.
func (p *planner) rejectedTightened() (names []string) {
	t := p.Listeners
	if p.Timeout <= 0 || t == nil || t.Snapshot() == nil {
		return nil
	}
	for name, u := range t.Unaccepted {
		names = append(names, u.Accepted.References().Tightened(t.Snapshot().Find(name).References())...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}
