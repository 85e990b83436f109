// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"slices"
	"time"

	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/resource"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// Who may call is said by the filters of listeners, and what may be called by route
// configurations. If both change at once, and listeners are to refuse more, the routes come
// when the client uses the listeners: new routes are never served without what was written
// to protect them. If listeners are only to refuse less, routes come first, also those that give
// up domains: what loses its protection has gone by then. A client that refuses listeners
// that refuse more keeps the routes that it has.

// tightening are route configurations, sorted, by what becomes of the listeners of which
// they have the routes.
type tightening struct {
	// tightened: they are to refuse more, as far as is known, and the client does not use them yet.
	tightened []string
	// loosened: they are to refuse less, and nothing more, and were not sent.
	loosened []string
}

// tightening returns what becomes of listeners.
func (c *connection) tightening(g *gate) (t tightening) {
	listeners := c.subscriptions[envoy.ListenerType]
	if c.cache.phaseTimeout <= 0 || listeners == nil || listeners.selection == nil || listeners.selection.snapshot == nil {
		return t
	}
	listeners.changed(listeners.target(), func(r *resource.State) {
		before, now := listeners.sent.Find(r.Name).References(), r.References()
		t.tightened = append(t.tightened, before.Tightened(now)...)
		t.loosened = append(t.loosened, now.Tightened(before)...)
	})
	t.tightened = append(t.tightened, c.stillTightened(listeners, g)...)
	slices.Sort(t.tightened)
	slices.Sort(t.loosened)
	t.loosened = slices.DeleteFunc(t.loosened, func(name string) bool { return isIn(t.tightened, name) })
	return t
}

// stillTightened returns those of listeners that were sent, and forgets them when the client
// uses the listeners, or has not answered for too long.
func (c *connection) stillTightened(listeners *subscription, g *gate) []string {
	p := &c.phases
	if len(p.tightened) == 0 {
		return nil
	}
	now := time.Now()
	unanswered, late := listeners.unanswered(g, now)
	if !unanswered && (late || !c.awaitsRoutes(g, now) && !c.switches(g, now)) && len(c.refusedTightened()) == 0 {
		p.tightened = nil
	}
	return p.tightened
}

// refusedTightened returns the route configurations, sorted, for which the client refuses
// listeners that refuse more than those that it goes on with.
func (c *connection) refusedTightened() (names []string) {
	listeners := c.subscriptions[envoy.ListenerType]
	if c.cache.phaseTimeout <= 0 || listeners == nil || listeners.refusals == nil || listeners.selection == nil || listeners.selection.snapshot == nil {
		return nil
	}
	for name, u := range listeners.refusals.unaccepted {
		names = append(names, u.accepted.References().Tightened(listeners.target().Find(name).References())...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// isTightened reports whether routes wait for listeners that are to refuse more. Routes that
// the client does not have wait for none: listeners may wait for them.
func (s *subscription) isTightened(g *gate, r *resource.State) bool {
	return s.typeURL == envoy.RouteType && isIn(g.tightened, r.Name) && s.sent.Find(r.Name) != nil
}

// isRefused reports whether the client keeps the routes that it has because it refuses a
// listener.
func (s *subscription) isRefused(g *gate, r *resource.State) bool {
	return s.typeURL == envoy.RouteType && isIn(g.refused, r.Name) && s.sent.Find(r.Name) != nil
}

// keepsRefused notes that the client is sent nothing more to a target for as long as it refuses
// listeners, so that nobody waits for it, and answers it if it has to be answered.
func (s *subscription) keepsRefused(target *resource.Snapshot) {
	s.lingering = lingering{s.sent, target}
	if s.mustAnswer {
		s.answer(s.state().NewContent(nil, s.traits()), s.sent, true)
	}
}
