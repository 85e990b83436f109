// SPDX-License-Identifier: Apache-2.0

package ads

import (
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
	// sent is what the client has, as far as responses were sent.
	sent *snapshot

	// open: a response may be sent. A request opens, a response closes.
	open bool
	// mustAnswer: the client is answered even if nothing is new to it.
	mustAnswer bool
	// requested: there was a request. returning: see dialect; it ends with the
	// first response. legacy: the first request had no names, which makes the
	// subscription a wildcard until there are some.
	requested, returning, legacy bool
	// resumed: the client has said what it has.
	resumed bool

	// ahead is a difference that was found without the lock, for the next answer; nil:
	// there is none.
	ahead *ahead

	acks     acks
	refusals *refusals // nil: there are none
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
func (s *subscription) difference() *difference {
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
	if key := s.differenceKey(); s.ahead != nil && s.ahead.differenceKey == key {
		return s.ahead.difference
	}
	return s.selection.difference(s.sent, s.dialect())
}

// dialect returns what the client is sent differently. There is a selection.
func (s *subscription) dialect() dialect {
	return dialect{delta: s.conn.delta, grpc: s.selection.view.Client == envoy.ForGRPC, returning: s.returning}
}

func (s *subscription) differenceKey() differenceKey { return differenceKey{s.sent, s.dialect()} }

// moment returns what the client is to have.
func (s *subscription) moment() moment {
	m := s.selection.moment()
	m.snapshot = s.target()
	return m
}

// has records what the client has.
func (s *subscription) has(sent *snapshot) {
	if s.selection == nil {
		s.sent = sent
		return
	}
	s.selection.has(s, sent)
}

// forget makes sure that the client is sent resources that it has once more.
func (s *subscription) forget(names []string) {
	s.acks.applied = 0
	s.has(s.sent.without(names))
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
	return d != nil && d.update != nil
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
	return d == nil || d.update == nil && d.removal == nil
}

// updates sends what is new or changed.
func (s *subscription) updates() {
	if !s.open || s.selection == nil || s.selection.snapshot == nil || s.sendApart() {
		return
	}
	d := s.difference()
	switch {
	case d != nil && d.update != nil:
		s.warm(d.update)
		s.answer(d.update, d.update.after, !d.more && d.removal == nil)
		s.returning = s.returning && (d.more || d.removal != nil)
	case s.mustAnswer:
		s.answer(s.moment().newContent(nil, dialect{delta: s.conn.delta}), s.sent, true)
	case d != nil && d.removal == nil:
		s.returning = false
		s.has(d.rest)
	}
}

// removals sends what is gone.
func (s *subscription) removals() {
	if !s.open {
		return
	}
	if d := s.difference(); d != nil && d.update == nil && d.removal != nil {
		s.returning = false
		s.answer(d.removal, d.removal.after, true)
	}
}

// warm sends the load assignments of clusters that changed once more. Envoy waits
// for them before it uses the new state of the cluster, and does not ask for what
// it is already subscribed to (xDS protocol, "Resource warming").
func (s *subscription) warm(update *content) {
	if s.typeURL != envoy.ClusterType || s.acks.pushed == 0 && !s.resumed {
		return // it has no clusters yet
	}
	eds := s.conn.subscriptions[envoy.LoadAssignmentType]
	if eds == nil && !s.resumed || eds != nil && eds.sent.list.Len() == 0 {
		return
	}
	var names []string
	for _, r := range update.listed {
		if eds == nil || eds.sent.find(r.name) != nil && eds.offers(r.name) {
			names = append(names, r.name)
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
	r := s.target().find(name)
	return r != nil && r.marker == present
}

// answer queues a response, after which the client has sent. last: no other follows to
// the same difference.
func (s *subscription) answer(c *content, sent *snapshot, last bool) {
	if c.after == nil { // an answer without anything new
		c.after = sent
	}
	s.mustAnswer, s.open = false, false
	s.has(sent)
	if c.parts == nil {
		s.conn.enqueue(s, c, sent.sum, false, last)
	}
	for i, part := range c.parts {
		s.conn.enqueue(s, part.content, part.sum, len(c.parts) > 1, last && i == len(c.parts)-1)
	}
}
