// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"maps"
	"runtime"
	"slices"
	"time"

	"github.com/pilotkit/pilotkit/internal/guard"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/failure"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/index"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/resource"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// change is the result of one push.
type change struct {
	// layers are the layers of the providers, changes the possible differences of each from its
	// predecessor. A nil changes means that there are none.
	layers  layers
	changes []Changes
	// unsure means that a call has failed before, so that everything may have changed.
	unsure bool
	// about are the objects of the push's request.
	about map[xdsupdate.ConfigKey]struct{}
	// since is when the push was requested.
	since time.Time
	// affected are the selections whose providers were asked whether everything may have changed.
	affected map[*selection]bool
}

// publish makes a change visible and queues the responses. Pushes come one at a time; it is called
// without the lock.
//
// It has two parts, so that nothing is encoded under the lock: the first finds the subscribed
// resources and has them encoded, the second makes the whole change visible in one step, for all
// clients that have subscribed until then. In between, clients get the former state.
func (c *cache) publish(ch *change) {
	made := c.subscribed(ch)
	c.make(made)

	var waiting []*selection
	c.locked(func() { waiting = c.publishLocked(ch) })
	runtime.KeepAlive(made) // layers have weak references to their resources
	for _, s := range waiting {
		c.prepare(s)
	}
}

func (c *cache) publishLocked(ch *change) (waiting []*selection) {
	c.layers = ch.layers
	c.epoch++
	c.noteChanges(ch.about)
	var touched []*selection
	mark := func(s *selection, name string) {
		if n := len(touched); n == 0 || touched[n-1] != s { // it may be in the list again
			touched = append(touched, s)
		}
		s.dirty = append(s.dirty, name)
	}
	c.eachAffected(ch, mark)
	waiting, c.unprepared = c.unprepared, nil
	changed := touched[:0]
	for _, s := range touched {
		if s.refresh(c.resolver(s.view)) {
			s.since = ch.since
			changed = append(changed, s)
		}
	}
	for _, s := range changed { // all selections first, because of the order of types
		s.flush()
	}
	c.progressed()
	return waiting
}

// flush flushes the connections of all subscriptions.
func (s *selection) flush() {
	for _, sub := range s.subscribers {
		sub.conn.flush()
	}
}

// wanted is a resource that a selection may have after a change.
type wanted struct {
	from          resolver
	typeURL, name string
	// named means that it is subscribed by name, not by a wildcard.
	named bool
	made  *resource.State // the result of make; may be nil
}

// subscribed returns the subscribed resources that a change may affect. It takes the lock.
func (c *cache) subscribed(ch *change) []wanted {
	var out []wanted
	c.mu.Lock()
	defer c.mu.Unlock()
	c.eachAffected(ch, func(s *selection, name string) {
		from := resolver{view: s.view.Value(), layers: ch.layers, failed: c.failures}
		out = append(out, wanted{from: from, typeURL: s.typeURL, name: name, named: s.names(name)})
	})
	return out
}

// make looks the resources up and encodes them. It is called without the lock.
func (c *cache) make(list []wanted) {
	for i := range list {
		w := &list[i]
		if w.named {
			w.made = w.from.named(w.typeURL, w.name)
		} else {
			w.made = w.from.covered(w.typeURL, w.name)
		}
		w.from.make(w.made)
	}
}

// eachAffected visits the selections that have a resource that a change may affect. It may visit
// one twice.
func (c *cache) eachAffected(ch *change, visit func(s *selection, name string)) {
	for i, changes := range ch.changes {
		mayBeCovered := ch.layers.mayBeCovered(i)
		for _, n := range changes.Names {
			var in func(view) bool
			if n.In != nil {
				in = func(of view) bool { return c.accepts(ch.layers[i], of.Value(), n.In) }
			}
			c.having(&n, !n.Uncovered || mayBeCovered, in, visit)
		}
	}
	c.everythingOf(ch, visit)
}

// accepts calls a function of a provider's changes. If it panics, the view is accepted.
func (c *cache) accepts(l *layer, v View, f func(View) bool) (accepted bool) {
	err := l.part.Call(func() error {
		accepted = f(l.view(v))
		return nil
	})
	c.failures.Add(err)
	return accepted || err != nil
}

// having visits the selections that have a resource, in the views that in accepts; nil accepts all.
func (c *cache) having(n *ChangedName, wildcards bool, in func(view) bool, visit func(s *selection, name string)) {
	each := func(list []*selection) {
		for _, s := range list {
			if n.concerns(s.view.Value().Namespace) && (in == nil || in(s.view)) {
				visit(s, n.Name)
			}
		}
	}
	of := c.index.Of(n.TypeURL)
	each(of.Having(n.Name))
	switch {
	case !wildcards:
	case n.Namespaces == nil:
		for _, list := range of.HavingAll() {
			each(list)
		}
	default:
		for _, namespace := range n.Namespaces {
			each(of.HavingAll()[namespace])
		}
	}
	if n.TypeURL == envoy.ClusterType {
		// The existence of a cluster decides about its load assignment.
		each(c.index.Of(envoy.LoadAssignmentType).Having(n.Name))
	}
}

// concerns reports whether the resource may have changed in the views of a namespace.
func (n *ChangedName) concerns(namespace string) bool {
	return n.Namespaces == nil || slices.Contains(n.Namespaces, namespace)
}

// everythingOf visits the selections where everything may have changed, with all names that they
// have or may have.
func (c *cache) everythingOf(ch *change, visit func(s *selection, name string)) {
	some, all := ch.namespaces()
	namespaces := maps.Keys(some)
	if all {
		namespaces = maps.Keys(c.selections)
	}
	for namespace := range namespaces {
		for _, list := range c.selections[namespace] {
			for _, s := range list {
				if !c.mayHaveChanged(ch, s) {
					continue
				}
				for _, name := range s.everything(ch, c.failures) {
					visit(s, name)
				}
			}
		}
	}
}

// namespaces returns the namespaces in which everything may have changed. all means that it may have in
// all of them.
func (ch *change) namespaces() (some map[string]struct{}, all bool) {
	all = ch.unsure
	for _, of := range ch.changes {
		switch {
		case of.Everything == nil:
		case of.Namespaces == nil:
			all = true
		case some == nil:
			some = maps.Clone(of.Namespaces)
		default:
			maps.Copy(some, of.Namespaces)
		}
	}
	return some, all
}

// mayHaveChanged reports whether everything that a selection has may have changed. Providers are
// asked once in a push.
func (c *cache) mayHaveChanged(ch *change, s *selection) bool {
	affected, asked := ch.affected[s]
	if !asked {
		affected = ch.unsure || c.acceptEverything(ch, s)
		if ch.affected == nil {
			ch.affected = make(map[*selection]bool)
		}
		ch.affected[s] = affected
	}
	return affected
}

func (c *cache) acceptEverything(ch *change, s *selection) bool {
	of := s.view.Value()
	for i, changes := range ch.changes {
		if _, in := changes.Namespaces[of.Namespace]; changes.Everything == nil || !in && changes.Namespaces != nil {
			continue
		}
		if c.accepts(ch.layers[i], of, func(v View) bool {
			// The existence of a cluster decides about its load assignment.
			return changes.Everything(v, s.typeURL) || s.typeURL == envoy.LoadAssignmentType && changes.Everything(v, envoy.ClusterType)
		}) {
			return true
		}
	}
	return false
}

// everything returns the names that a selection has or may have, including those of a first
// snapshot that is being built from the former layers.
func (s *selection) everything(ch *change, failed *failure.List) []string {
	out := index.Names(s.topics)
	if !s.wildcard {
		return out
	}
	if s.snapshot != nil {
		for r := range s.snapshot.List.All() {
			out = append(out, r.Name)
		}
	}
	for _, of := range []layers{s.preparing, ch.layers} {
		names, err := of.names(s.view.Value(), s.typeURL)
		failed.Undone(err)
		out = append(out, names...)
	}
	return out
}

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
	since := req.Start
	if since.IsZero() {
		since = begun
	}
	if p := guard.Call(func() { req = s.rebuild(req, since) }); p != nil {
		s.cache.failures.Undone(failure.Part{In: failure.InPush}.Wrap(p))
	}
	s.reportFailures()
	s.observing(func(o Observer) {
		o.Pushed(PushEvent{Request: req, Waited: max(0, begun.Sub(since)), Took: time.Since(begun)})
	})
}

// rebuild rebuilds and publishes the state that a request names, and returns the request that was pushed. Only it and
// the functions that it calls replace the layers, with building held, so they read the layers without the cache's lock.
func (s *Server) rebuild(req *xdsupdate.PushRequest, since time.Time) *xdsupdate.PushRequest {
	s.building.Lock()
	defer s.building.Unlock()
	if s.cache.layers == nil {
		start := req.Start
		req = everything()
		req.Start = start
	}
	push := &PushContext{Request: req, moment: s.moment}
	ch := &change{since: since, about: req.ConfigsUpdated, unsure: s.unsure.Swap(false)}
	if !s.provide(push, ch) {
		return req // a response from an empty state would remove all resources of proxies
	}
	s.cache.publish(ch)
	s.services.Published(push.Request.Everything())
	if slices.ContainsFunc(ch.changes, func(c Changes) bool { return c.Regroup }) {
		s.ReviewProxies(nil)
	}
	return req
}
