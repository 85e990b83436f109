// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"slices"

	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/difference"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/index"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/resource"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/sequence"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// Scope implements sequence.Target.
func (s *subscription) Scope() sequence.Scope {
	switch {
	case s.selection == nil:
		return sequence.Nothing
	case s.selection.wildcard:
		return sequence.Everything
	default:
		return sequence.Names
	}
}

func (s *subscription) topics() []*topic {
	if s.selection == nil {
		return nil
	}
	return s.selection.topics
}

// Difference implements sequence.Target.
func (s *subscription) Difference() *difference.Difference {
	target := s.Snapshot()
	if target == nil || s.Has == target && !s.Returning {
		return nil
	}
	key, known, ahead := s.differenceKey(), &s.selection.differences, s.ahead
	if s.rejections.isolates() {
		known, ahead = &s.rejections.own.differences, nil
	}
	found := known.Get(key)
	if found == nil && ahead != nil {
		found = ahead.Get(key)
	}
	if found == nil {
		found = s.state().Difference(key.From, key.Traits)
		known.Add(key, found)
	}
	return found
}

func (s *subscription) differenceKey() difference.Key {
	return difference.Key{From: s.Has, Traits: s.conn.Traits(&s.Type)}
}

// state returns the state of the selection, with the snapshot that the client is to have.
func (s *subscription) state() selectionState {
	in := s.selection
	return selectionState{Kind: difference.Kind{TypeURL: s.URL, Wildcard: in.wildcard}, Topics: in.topics, Snapshot: s.Snapshot()}
}

// Named implements sequence.Target.
func (s *subscription) Named(name string) (subscribed, unsettled bool) {
	return s.selection.names(name), s.selection.snapshot == nil || slices.Contains(s.selection.dirty, name)
}

// Announcement implements sequence.Target. The clients of a selection share it.
func (s *subscription) Announcement(base, of *resource.State) *sequence.Announcement {
	key, in := announcementKey{base, of}, s.selection
	a, found := in.announcements[key]
	if !found {
		if in.announcements == nil {
			in.announcements = make(map[announcementKey]*sequence.Announcement)
		}
		a = sequence.NewAnnouncement(base, of)
		in.announcements[key] = a
	}
	return a
}

// Moved implements sequence.Target: it counts the clients that are up to date.
func (s *subscription) Moved(before *resource.Snapshot) {
	in := s.selection
	if in == nil {
		return
	}
	if before == in.snapshot {
		in.current--
	}
	if s.Has == in.snapshot {
		if in.current++; in.current == len(in.subscribers) {
			in.differences.Release()
			in.announcements = nil
		}
	}
}

// resubscribe applies a request to a subscription. It takes the lock. The subscription is not open
// meanwhile, so no response changes the resources of its client.
func (s *subscription) resubscribe(r *received) {
	c := s.conn.cache
	list := r.Names.Decoded()
	if r.Delta {
		list = r.Subscribe.Decoded()
	}
	if r.InitialVersions.Count > 0 {
		r.resumed = c.recall(s.conn, r)
	}
	defer c.detach()
	add, unpin := c.pin(r.TypeURL, list)
	defer unpin()
	drop, unpinDropped := c.pin(r.TypeURL, r.Unsubscribe.Decoded())
	defer unpinDropped()
	for !s.tryChange(r, add, drop) {
		// The view or the client's resources have changed meanwhile: try again.
	}
}

// tryChange applies a request to the present state of a subscription. add are the topics of the
// names that the request has or subscribes to, drop the topics of the names that it unsubscribes
// from. It reports whether the request was applied, or the connection is closed. It takes the lock.
func (s *subscription) tryChange(r *received, add, drop []*topic) (done bool) {
	c := s.conn.cache
	var before holding
	c.locked(func() {
		if done = s.conn.closed; !done {
			before = s.holding()
		}
	})
	if done {
		return true
	}
	after := before.after(r, add, drop)
	n := names{after.selectionKey, after.topics, index.Without(after.topics, before.topics), index.Without(before.topics, after.topics)}
	n.sum, n.count = before.sum+index.Sum(n.come)-index.Sum(n.left), len(n.topics)
	var made *selection
	c.locked(func() { made, done = s.become(&before, &after, n) })
	if made != nil {
		c.attach(made, before.selection)
		s.conn.stream.server.allowances.Spend(s.conn.stream.allowance, len(made.topics)) // it was not visible in the request
	}
	s.conn.stream.topics = len(after.topics)
	return done
}

// become replaces the state of a subscription by the result of a request. done is false if the
// subscription has changed meanwhile. made is a selection that has to be attached. It is called
// with the cache's mutex held.
func (s *subscription) become(before, after *holding, n names) (made *selection, done bool) {
	if s.conn.closed {
		return nil, true
	}
	if !before.is(s) {
		return nil, false
	}
	s.Returning, s.legacy = after.returning, after.legacy
	s.Resumed, s.MustAnswer = after.resumed, after.mustAnswer
	s.conn.Warming = after.warming
	s.Acks.Applied = 0 // there may be more resources to apply
	s.Have(after.sent)
	s.answersGone(n.come)
	return s.conn.cache.subscribe(s, n), true
}

// answersGone makes sure that a SotW client gets a response about the load assignments of clusters
// that it was sent and that have been removed. It waits for them, together with all clusters of the
// same response, and SotW has no other response for them.
func (s *subscription) answersGone(come []*topic) {
	if s.URL != envoy.LoadAssignmentType || s.conn.Delta || !s.conn.Phased() {
		return
	}
	clusters := s.conn.Clusters
	target := clusters.Snapshot()
	if target == nil || clusters.Has == target {
		return
	}
	var edits []resource.Edit
	for _, t := range come {
		for cluster := range clusters.Has.ClustersOf(t.Name) {
			if s.Has.Find(t.Name) == nil && !target.Find(cluster.Name).IsPresent() {
				edits = append(edits, resource.Edit{Name: t.Name, Resource: resource.NewMarker(s.URL, t.Name, resource.Unknown)})
				break
			}
		}
	}
	s.Have(s.Has.With(edits))
}

// names are the names of a subscription, sorted, and the key of its selection. come and left are the topics that are
// new to the selection, and those that it loses.
type names struct {
	selectionKey
	topics, come, left []*topic
}

// subscribe subscribes to some names, and to everything if wildcard is set. It returns a selection
// that has to be attached, or nil; with such a selection, the former one is held. Has must not have
// resources that the client is not subscribed to.
func (c *cache) subscribe(s *subscription, n names) *selection {
	key, old := n.selectionKey, s.selection
	if old != nil && old.selectionKey == key && slices.Equal(old.topics, n.topics) {
		return nil
	}
	equal := c.selections[key.view.Value().Namespace][key]
	if i := slices.IndexFunc(equal, func(s *selection) bool { return slices.Equal(s.topics, n.topics) }); i >= 0 {
		found := equal[i] // unsubscribe may change the list
		c.unsubscribe(s)
		found.join(s)
		return nil
	}
	few := len(n.come)+len(n.left) <= c.partSize
	if few && old != nil && len(old.subscribers) == 1 && old.view == key.view && old.wildcard == key.wildcard && old.snapshot != nil {
		c.rename(old, n)
		return nil
	}
	made := &selection{selectionKey: key, topics: n.topics, held: 1}
	if key.wildcard {
		c.index.Change(s.URL, func(t *index.Type[*selection]) { t.AddToAll(made, made.view.Value().Namespace) })
	}
	c.rememberSelection(made)
	if old != nil {
		old.held++
	}
	c.unsubscribe(s)
	made.join(s)
	return made
}

// unsubscribe removes a subscription from its selection, if it has one. The last one ends the selection, which
// leaves the index when detach is called.
func (c *cache) unsubscribe(sub *subscription) {
	s := sub.selection
	if s == nil {
		return
	}
	s.subscribers = index.Removed(s.subscribers, sub)
	if sub.selection = nil; sub.Has == s.snapshot {
		s.current--
	}
	if len(s.subscribers) > 0 {
		return
	}
	if s.wildcard {
		c.index.Change(s.typeURL, func(t *index.Type[*selection]) { t.RemoveFromAll(s, s.view.Value().Namespace) })
	}
	c.unprepared = index.Removed(c.unprepared, s)
	c.forgetSelection(s)
	c.leaveIndex(s)
}

// rememberSelection and forgetSelection maintain selections.
func (c *cache) rememberSelection(s *selection) {
	namespace := s.view.Value().Namespace
	in := c.selections[namespace]
	if in == nil {
		in = make(map[selectionKey][]*selection)
		c.selections[namespace] = in
	}
	in[s.selectionKey] = append(in[s.selectionKey], s)
}

func (c *cache) forgetSelection(s *selection) {
	namespace := s.view.Value().Namespace
	in := c.selections[namespace]
	if in[s.selectionKey] = index.Removed(in[s.selectionKey], s); len(in[s.selectionKey]) == 0 {
		delete(in, s.selectionKey)
	}
	if len(in) == 0 {
		delete(c.selections, namespace)
	}
}

// rename changes a few names of a selection with one subscription, at the cost of the changed
// names.
func (c *cache) rename(s *selection, n names) {
	c.forgetSelection(s)
	var gone []resource.Edit
	for _, p := range n.left {
		if s.wildcard {
			s.dirty = append(s.dirty, p.Name)
		} else {
			gone = append(gone, resource.Edit{Name: p.Name})
			s.failing.note(p.Name, nil)
		}
	}
	for _, p := range n.come {
		s.dirty = append(s.dirty, p.Name)
	}
	index.Add(s, n.come)
	c.index.Change(s.typeURL, func(t *index.Type[*selection]) { t.Remove(s, n.left) })
	s.selectionKey, s.topics = n.selectionKey, n.topics
	s.differences = difference.Known{} // they depend on the names
	c.rememberSelection(s)
	s.publish(s.snapshot.With(gone))
}

// prepare builds the first snapshot of a selection and sends it to its subscribers. If it cannot be built, or the view
// is closed, the next push prepares it. It is called without the lock: the work for a selection is done by the
// goroutine that needs it first, and no other one waits for it.
func (c *cache) prepare(s *selection) {
	for c.tryPrepare(s) {
		// A push has come meanwhile, and may have opened the view.
	}
	var subscribers []*subscription
	c.locked(func() {
		if s.snapshot != nil {
			subscribers = slices.Clone(s.subscribers)
		}
	})
	for _, sub := range subscribers {
		c.catchUp(sub, func() {})
	}
}

// tryPrepare is one attempt of prepare. again means that it was with the layers of a former push.
func (c *cache) tryPrepare(s *selection) (again bool) {
	var from resolver
	var topics []*topic
	var epoch uint64
	c.locked(func() {
		from, topics, epoch = c.resolver(s.view), s.topics, c.epoch
		s.dirty, s.preparing = nil, from.layers // later changes become dirty names
	})
	var first *resource.Snapshot
	var failing failing
	if from.isOpen() {
		first, failing = s.prepare(from, topics)
	}
	c.locked(func() {
		s.preparing = nil
		switch {
		case first != nil:
			s.publish(first)
			s.failing = failing
		case len(s.subscribers) == 0:
		case c.epoch != epoch:
			again = true
		default:
			c.unprepared = append(c.unprepared, s)
		}
		c.progressed()
	})
	return again
}
