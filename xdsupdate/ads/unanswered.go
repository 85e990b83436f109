// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"time"

	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/reference"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

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
	return len(s.conn.queue) == 0 && !s.acks.AwaitsParts() && !s.refusals.dividing()
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
