// SPDX-License-Identifier: Apache-2.0

package sequence

import (
	"time"

	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/reference"
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
	accepted := f.acceptedEndpoints()
	var out reference.ClusterNames
	for _, n := range o.Fresh {
		switch r := o.Find(n.Name); {
		case accepted(n.Name):
		case r != nil && !reference.IsEDS(r.Value) && f.isPast(resolved):
		default:
			out = append(out, n)
		}
	}
	return out
}

// acceptedEndpoints returns a function that reports whether the client has accepted the endpoints of a cluster.
func (p *planner) acceptedEndpoints() func(cluster string) bool {
	t := p.Assignments
	if t == nil {
		return func(string) bool { return false }
	}
	awaited := make(map[string]bool)
	for i := range t.Acks.Unanswered {
		for _, r := range t.Acks.Unanswered[i].Listed {
			awaited[r.Name] = true
		}
	}
	return func(cluster string) bool { return !awaited[cluster] && t.Has.Find(cluster).IsPresent() }
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
