// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"cmp"
	"time"

	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/acks"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/difference"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/resource"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// subscription is one type of one stream: what it selects, what its client has,
// and whether it may be answered. All of it is guarded by the cache's mutex.
//
// What is to be sent is not kept: it is the difference between the snapshot of
// the selection and what the client has. So a slow client costs nothing, however
// often things change meanwhile.
type subscription struct {
	conn      *connection
	typeURL   string
	selection *selection
	position  int // in selection.subscribers
	// sent is what the client has, as far as responses were sent. forgotten is what that was
	// before something was forgotten, until that is sent once more; nil: nothing was.
	sent, forgotten *resource.Snapshot

	// open: a response may be sent. A request opens, a response closes.
	open bool
	// mustAnswer: the client is answered even if nothing is new to it.
	mustAnswer bool
	// requested: there was a request. returning: see clientTraits; it ends with the
	// first response. legacy: the first request had no names, which makes the
	// subscription a wildcard until there are some.
	requested, returning, legacy bool
	// resumed: the client has said what it has.
	resumed bool

	// ahead is a difference that was found without the lock, for the next answer; nil:
	// there is none.
	ahead *ahead

	acks     acks.Tracker
	refusals *refusals // nil: there are none
	// held is what waits for clusters; nil: nothing does. lingering is what is removed later.
	held      *hold
	waiting   time.Time // since when something new waits; zero: nothing does
	lingering lingering
	// announced are the route configurations that are announced to the client.
	announced map[string]*announcement
	// quarantines are the resources of which the client is sent another state than all
	// others; nil: there are none.
	quarantines *quarantines
}

// wildcard reports whether the subscription covers everything.
func (s *subscription) wildcard() bool { return s.selection != nil && s.selection.wildcard }

func (s *subscription) topics() []*topic {
	if s.selection == nil {
		return nil
	}
	return s.selection.topics
}

// difference returns what the client is to be sent; nil if it is up to date, or
// if the selection is not ready.
func (s *subscription) difference() *difference.Difference {
	if s.selection == nil || s.selection.snapshot == nil {
		return nil
	}
	target := s.target()
	if s.sent == target && !s.returning {
		return nil
	}
	if s.quarantines != nil {
		return s.ownDifference()
	}
	if key := s.differenceKey(); s.ahead != nil && s.ahead.key == key {
		return s.ahead.found
	}
	return s.selection.difference(s.sent, s.traits())
}

// traits returns what the client is sent differently. There is a selection.
func (s *subscription) traits() difference.Traits {
	return difference.Traits{Delta: s.conn.delta, GRPC: s.selection.view.Client == envoy.ForGRPC, Returning: s.returning}
}

func (s *subscription) differenceKey() difference.Key {
	return difference.Key{From: s.sent, Traits: s.traits()}
}

// state returns what the client is to have.
func (s *subscription) state() selectionState {
	m := s.selection.state()
	m.Snapshot = s.target()
	return m
}

// has records what the client has.
func (s *subscription) has(sent *resource.Snapshot) {
	if s.selection == nil {
		s.sent = sent
		return
	}
	s.selection.has(s, sent)
}

// forget makes sure that the client is sent resources that it has once more.
func (s *subscription) forget(names []string) {
	s.acks.Applied = 0
	if before := s.sent; len(names) > 0 {
		s.has(before.Without(names))
		s.forgotten = cmp.Or(s.forgotten, before)
	}
}

// updating reports whether there is something new that the client was not sent.
func (s *subscription) updating() bool {
	if s.selection == nil {
		return false
	}
	if s.selection.snapshot == nil || s.refusals.dividing() {
		return true
	}
	d := s.difference()
	return d != nil && d.Update != nil
}

// complete reports whether the client was sent everything.
func (s *subscription) complete() bool {
	if s.selection == nil {
		return true
	}
	if s.selection.snapshot == nil || s.mustAnswer && s.open || s.refusals.dividing() || s.isolating() {
		return false
	}
	d := s.difference()
	return d == nil || d.Update == nil && d.Removal == nil || s.lingering == lingering{s.sent, s.target()}
}

// updates sends what is new or changed.
func (s *subscription) updates() {
	s.sendsUnanswered()
	if !s.open || s.selection == nil || s.selection.snapshot == nil || s.sendApart() {
		return
	}
	d := s.difference()
	if d != nil && d.Update != nil {
		if g, waits := s.behind(d.Update); waits {
			s.updatesBehind(g)
			return
		}
		if s.announces(d.Update) || s.keepsLeft(d.Update) {
			return
		}
		s.held, s.waiting = nil, time.Time{}
	}
	switch {
	case d != nil && d.Update != nil:
		s.warm(d.Update)
		s.answer(d.Update, d.Update.After, !d.More && d.Removal == nil)
		s.returning = s.returning && (d.More || d.Removal != nil)
	case s.mustAnswer:
		s.answer(s.state().NewContent(nil, difference.Traits{Delta: s.conn.delta}), s.sent, true)
	case d != nil && d.Removal == nil:
		s.returning = false
		s.has(d.Rest)
	}
}

// removals sends what is gone.
func (s *subscription) removals() {
	if !s.open {
		return
	}
	if d := s.difference(); d != nil && d.Update == nil && d.Removal != nil && !s.keepsLeft(d.Removal) {
		s.returning = false
		s.answer(d.Removal, d.Removal.After, true)
	}
}

// warm sends the load assignments of clusters that changed once more. Envoy waits
// for them before it uses the new state of the cluster, and does not ask for what
// it is already subscribed to (xDS protocol, "Resource warming").
func (s *subscription) warm(update *difference.Content) {
	if s.typeURL != envoy.ClusterType || s.acks.Pushed == 0 && !s.resumed {
		return // it has no clusters yet
	}
	eds := s.conn.subscriptions[envoy.LoadAssignmentType]
	if eds == nil && !s.resumed || eds != nil && eds.sent.List.Len() == 0 {
		return
	}
	var names []string
	for _, r := range update.Listed {
		if eds == nil || eds.sent.Find(r.Name) != nil && eds.offers(r.Name) {
			names = append(names, r.Name)
		}
	}
	if eds == nil {
		s.conn.warming = append(s.conn.warming, names...)
		return
	}
	eds.forget(names)
}

// offers reports whether there is a resource of a name for the client.
func (s *subscription) offers(name string) bool {
	if s.selection == nil || s.selection.snapshot == nil {
		return false
	}
	r := s.target().Find(name)
	return r != nil && r.Marker == resource.Present
}

// answer queues a response, after which the client has sent. last: no other follows to
// the same difference.
func (s *subscription) answer(c *difference.Content, sent *resource.Snapshot, last bool) {
	before, left := s.record(c, sent)
	if c.Parts == nil {
		s.conn.enqueue(s, c, before, sent.Sum, false, last)
	}
	for i, part := range c.Parts {
		s.conn.enqueue(s, part.Content, before, part.Sum, len(c.Parts) > 1, last && i == len(c.Parts)-1)
	}
	s.acks.Unanswered[len(s.acks.Unanswered)-1].Left = left
}

// record notes that the client is sent a response, and returns what it had before, and
// which clusters its calls leave. It is apart from answer because the stack of a stream is
// deepest below that: with this in it, each takes 8 kB more.
func (s *subscription) record(c *difference.Content, sent *resource.Snapshot) (before *resource.Snapshot, left []uint64) {
	if c.After == nil { // an answer without anything new
		c.After = sent
	}
	s.mustAnswer, s.open = false, false
	before = cmp.Or(s.forgotten, s.sent)
	s.sends(c, s.sent)
	s.forgotten = nil
	left = s.leaves(c)
	s.has(sent)
	if c.Full || len(c.Removed) > 0 {
		s.refusals.forgetGone(sent)
	}
	if r := s.conn.phases.removal; r != nil && s.typeURL == envoy.ClusterType {
		r.target = r.target.WithAll(c.Listed) // see removal.keep
	}
	return before, left
}
