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

// gate keeps what names clusters from a client that cannot use them yet.
type gate struct {
	// closed: it is not known which clusters those are.
	closed bool
	coming []reference.ClusterNames
	// listeners: there are changes of listeners that are not in use yet.
	listeners bool
	// routes are the route configurations that listeners wait for, sorted.
	routes []string
	// tightening are the route configurations whose listeners are to refuse more, or less, and
	// refused those for which the client refuses listeners that refuse more, sorted.
	tightening
	refused []string
	// until is when the first of them has waited long enough; zero: it need not be known.
	until time.Time
}

// gate returns what waits now, if something has waited since a time; zero: nothing has.
func (c *connection) gate(waiting time.Time) (g gate) {
	now := time.Now()
	clusters := c.subscriptions[envoy.ClusterType]
	if clusters.selection == nil || clusters.selection.snapshot == nil {
		g.closed = true // until the first push, or until names are decoded
		return g
	}
	late := false
	for i := range clusters.acks.Unanswered {
		o := &clusters.acks.Unanswered[i]
		if c.cache.overdue(o, now) {
			late = true
			continue
		}
		g.wait(o.SentAt.Add(c.cache.phaseTimeout))
		if len(o.Fresh) > 0 {
			g.coming = append(g.coming, c.unusable(i, &g, waiting, now))
		}
	}
	if late && !clusters.takesUnanswered() { // the rest, too
		return g
	}
	g.closed = clusters.refusals.dividing()
	if d := clusters.difference(); d != nil && d.Update != nil {
		g.closed = g.closed || d.More
		g.coming = append(g.coming, d.Update.Fresh)
	}
	return g
}

func (g *gate) wait(until time.Time) {
	if g.until.IsZero() || until.Before(g.until) {
		g.until = until
	}
}

// stops reports whether a resource names clusters that the client cannot use yet.
func (g *gate) stops(r *resource.State) bool {
	if g.closed {
		return true
	}
	for _, names := range g.coming {
		if len(names.Among(r.References().Clusters, false)) > 0 {
			return true
		}
	}
	return false
}

// needs adds the names that keep a resource back.
func (g *gate) needs(to []string, r *resource.State) []string {
	for _, names := range g.coming {
		to = append(to, names.Among(r.References().Clusters, true)...)
	}
	return to
}

// isComing reports whether a cluster cannot be used yet.
func (g *gate) isComing(name string) bool {
	for _, names := range g.coming {
		if names.Has(name) {
			return true
		}
	}
	return g.closed
}

// behind reports whether some of what is new of listeners or routes has to wait.
func (s *subscription) behind(update *difference.Content) (g gate, waits bool) {
	if !reference.HasClusters(s.typeURL) || !s.conn.phased() {
		return g, false
	}
	isRoutes := s.typeURL == envoy.RouteType
	switch g = s.conn.gate(s.waiting); {
	case !s.waiting.IsZero() && !s.waiting.Add(s.conn.cache.phaseTimeout).After(time.Now()):
		g = gate{} // again and again for something else
	case isRoutes:
		g.listeners = s.conn.changesListeners(&g)
		g.tightening = s.conn.tightening(&g)
	default:
		g.routes = s.conn.comingRoutes(&g)
	}
	if isRoutes {
		g.refused = s.conn.refusedTightened()
	}
	return g, slices.ContainsFunc(update.Listed, func(r *resource.State) bool { return s.isRefused(&g, r) || s.waits(&g, r) })
}

// waits reports whether a resource has to wait.
func (s *subscription) waits(g *gate, r *resource.State) bool {
	return g.stops(r) || g.listeners && !isIn(g.loosened, r.Name) && s.givesUpDomains(r) || s.isTightened(g, r) ||
		len(g.routes) > 0 && slices.ContainsFunc(r.References().Routes, func(name string) bool { return isIn(g.routes, name) })
}

// isIn reports whether a name is in a sorted list.
func isIn(names []string, name string) bool {
	_, found := slices.BinarySearch(names, name)
	return found
}

// comingRoutes returns the names of route configurations, sorted, of which the client is to
// have another state before listeners send requests there.
func (c *connection) comingRoutes(g *gate) (names []string) {
	s := c.subscriptions[envoy.RouteType]
	if s == nil || s.selection == nil || s.selection.snapshot == nil {
		return nil
	}
	if len(s.acks.Unanswered) > 0 {
		until := s.acks.Unanswered[0].SentAt.Add(c.cache.phaseTimeout)
		if !until.After(time.Now()) {
			return nil
		}
		g.wait(until)
	}
	if d := s.difference(); d == nil || d.Update == nil {
		return nil
	}
	of := gate{tightening: c.tightening(g), refused: c.refusedTightened()}
	s.changed(s.target(), func(r *resource.State) {
		waits := s.isTightened(&of, r) || s.isRefused(&of, r) // for listeners itself
		if !waits && (g.stops(r) || isIn(of.loosened, r.Name) || !s.givesUpDomains(r)) {
			names = append(names, r.Name)
		}
	})
	return names
}

// givesUpDomains reports whether a route configuration has no routes for a domain that
// it has at the client.
func (s *subscription) givesUpDomains(r *resource.State) bool {
	now := r.References().Domains
	return slices.ContainsFunc(s.sent.Find(r.Name).References().Domains, func(hash uint64) bool { return !now.Has(hash) })
}

// changesListeners reports whether the client is to have listeners that it does not use
// yet: they were not sent, not answered, or need routes that it does not have.
func (c *connection) changesListeners(g *gate) bool {
	listeners := c.subscriptions[envoy.ListenerType]
	if listeners == nil {
		return false
	}
	now := time.Now()
	unanswered, late := listeners.unanswered(g, now)
	return unanswered || !late && (listeners.updating() || c.awaitsRoutes(g, now) || c.switches(g, now))
}

// unanswered reports whether a response waits for its answer, or one is late.
func (s *subscription) unanswered(g *gate, now time.Time) (waits, late bool) {
	for i := range s.acks.Unanswered {
		o := &s.acks.Unanswered[i]
		if s.conn.cache.overdue(o, now) {
			late = true
			continue
		}
		g.wait(o.SentAt.Add(s.conn.cache.phaseTimeout))
		return true, late
	}
	return false, late
}

// switches reports whether threads of the client may not have taken the last listeners yet.
func (c *connection) switches(g *gate, now time.Time) bool {
	until := c.phases.switched.Add(switchTime)
	if !until.After(now) {
		return false
	}
	g.wait(until)
	return true
}

// awaitsRoutes reports whether the client has to be sent, or to answer, routes of a
// changed listener.
func (c *connection) awaitsRoutes(g *gate, now time.Time) bool {
	if len(c.phases.awaited) == 0 {
		return false
	}
	routes := c.subscriptions[envoy.RouteType]
	until := c.phases.awaitedSince.Add(c.cache.phaseTimeout)
	if routes == nil || !until.After(now) {
		c.phases.awaited = nil
		return false
	}
	c.phases.awaited = slices.DeleteFunc(c.phases.awaited, func(name string) bool {
		return routes.sent.Find(name) != nil && !routes.acks.Awaits(name)
	})
	g.wait(until)
	if len(c.phases.awaited) > 0 {
		return true
	}
	c.phases.switched = now
	return false
}

// answerWait is how long newer clusters wait for the answer to older ones.
//
// Envoy answers clusters when all of them can be used. One whose DNS server does not answer
// keeps the answer back for more than a minute (c-ares asks four times, for 5, 10, 20 and 40
// seconds), but Envoy takes what it is sent meanwhile: the clusters of others are not to
// wait for that one.
const answerWait = 500 * time.Millisecond

// resolveWait is how long what names a cluster that is to be resolved waits for that, if
// the answer is late, however many such clusters come one after the other: the same resource
// may have routes of others.
const resolveWait = 2 * time.Second

// sendsUnanswered opens clusters, once in answerWait, for what is new beside an answer that
// is late.
func (s *subscription) sendsUnanswered() {
	n := len(s.acks.Unanswered)
	if s.open || s.typeURL != envoy.ClusterType || n == 0 || !s.conn.phased() || !s.takesUnanswered() || !s.updating() {
		return
	}
	due := s.acks.Unanswered[n-1].SentAt.Add(answerWait)
	if due.After(time.Now()) {
		s.conn.wakeAt(due)
		return
	}
	s.open = true
}

// takesUnanswered reports whether clusters may be sent beside others without an answer: not
// to a client that does not read (connection.queue), nor while it is found out what it refuses.
func (s *subscription) takesUnanswered() bool {
	return len(s.conn.queue) == 0 && !s.acks.Full() && !s.refusals.dividing()
}

// unusable returns which clusters of a response without an answer the client cannot use
// yet. If the answer is late, or one before it is, those can be used of which the client has
// accepted the endpoints, and those that are to be resolved if they were sent, or something
// waits, for resolveWait.
func (c *connection) unusable(i int, g *gate, waiting, now time.Time) reference.ClusterNames {
	o := &c.subscriptions[envoy.ClusterType].acks.Unanswered[i]
	if late := o.SentAt.Add(answerWait); i == 0 && late.After(now) {
		g.wait(late)
		return o.Fresh
	}
	since := o.SentAt
	if !waiting.IsZero() && waiting.Before(since) {
		since = waiting
	}
	resolved := since.Add(resolveWait)
	if resolved.After(now) {
		g.wait(resolved)
	}
	accepted := c.acceptedEndpoints()
	var out reference.ClusterNames
	for _, n := range o.Fresh {
		switch r := o.Find(n.Name); {
		case accepted(n.Name):
		case r != nil && !reference.IsEDS(r.Value) && !resolved.After(now):
		default:
			out = append(out, n)
		}
	}
	return out
}

// acceptedEndpoints returns what reports whether the client has accepted the endpoints of a
// cluster.
func (c *connection) acceptedEndpoints() func(cluster string) bool {
	s := c.subscriptions[envoy.LoadAssignmentType]
	if s == nil {
		return func(string) bool { return false }
	}
	awaited := make(map[string]bool)
	for i := range s.acks.Unanswered {
		for _, r := range s.acks.Unanswered[i].Listed {
			awaited[r.Name] = true
		}
	}
	return func(cluster string) bool { return !awaited[cluster] && s.sent.Find(cluster).IsPresent() }
}
