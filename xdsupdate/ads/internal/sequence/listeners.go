// SPDX-License-Identifier: Apache-2.0

package sequence

import (
	"slices"
	"time"

	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/resource"
)

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
	if t == nil || t.Snapshot() == nil {
		return nil
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
	if f.Timeout <= 0 || t == nil || t.Snapshot() == nil {
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
