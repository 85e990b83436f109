// SPDX-License-Identifier: Apache-2.0

package sequence

import (
	"slices"
	"time"

	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/difference"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/reference"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/resource"
)

// A gRPC client is not made to unsubscribe from a removed cluster either: it keeps the cluster
// without endpoints, so that calls fail at once. Its endpoints must not be removed before the
// client uses routes that lead elsewhere, which it may hold back until it has other clusters
// (grpc-go, grpc-js). So clusters that routes are about to leave stay as they are, with their
// assignments, until the client has unsubscribed, which it does after the last call there.

const (
	// leaveWait is how long a client may take to give up a cluster after it has accepted the routes without it: calls
	// have chosen the cluster, and not an endpoint yet.
	leaveWait = time.Second
	// askWait is how long a client may take to subscribe to resources that it needs, after it has accepted
	// resources that reference them; clients do so at once.
	askWait = time.Second
)

// Announcement is a route configuration with routes that match no call. It is immutable.
type Announcement struct {
	// base is the state that the client had before, of the state that base is followed by; sent has the routes of
	// base, and references the clusters, too.
	base, of, sent *resource.State
	clusters       []string
}

// announcedState is an announcement to one client.
type announcedState struct {
	*Announcement
	// sent is the announcement as the client has it; accepted is when it was seen to have accepted it.
	sent     *resource.State
	accepted time.Time
}

// NewAnnouncement returns an announcement, or nil if it would be too large.
func NewAnnouncement(base, of *resource.State) *Announcement {
	a := &Announcement{base: base, of: of, clusters: reference.Clusters(of.TypeURL, of.Value, base.References().Clusters)}
	value := reference.Announce(base.Value, a.clusters, difference.MaxBytes)
	if value == nil {
		return nil
	}
	a.sent = &resource.State{TypeURL: base.TypeURL, Name: base.Name, Bytes: func() []byte { return value }}
	a.sent.Exists()
	return a
}

// isUnready reports whether routes have to be announced, or their announcement was not accepted with the clusters.
func (f *facts) isUnready(r *resource.State) bool {
	a, needed := f.announcement(r)
	if !needed || f.isReady(&a) {
		delete(f.announced, r.Name)
		return false
	}
	f.announced[r.Name] = a
	return true
}

// announcement returns the announcement of a new state of a route configuration, if it needs one.
func (f *facts) announcement(r *resource.State) (a announcedState, needed bool) {
	sent := f.of.Has.Find(r.Name)
	base, before := sent, f.m.announced[r.Name]
	if before.sent != nil && before.sent == sent {
		if base = before.base; before.of.Same(r) {
			return before, true
		}
	}
	if !base.IsPresent() || base.Value == nil || !r.References().Clusters.Exceed(base.References().Clusters) {
		return a, false // also if the client has brought the routes from another stream, so that they are not known here
	}
	made := f.of.Announcement(base, r)
	if made == nil {
		return a, false
	}
	a = announcedState{Announcement: made, sent: made.sent}
	if base != sent && made.sent.Same(sent) { // other routes to the same clusters
		a.sent, a.accepted = sent, before.accepted
	}
	return a, true
}

// isReady reports whether the client has accepted an announcement and the clusters that it references, with their
// assignments.
func (f *facts) isReady(a *announcedState) bool {
	if f.of.Has.Find(a.sent.Name) != a.sent || f.of.Acks.Awaits(a.sent.Name) {
		return false
	}
	if a.accepted.IsZero() {
		a.accepted = f.now.Time
	}
	asks := !f.isPast(a.accepted.Add(askWait))
	if asks {
		f.by(a.accepted.Add(askWait))
	}
	return !slices.ContainsFunc(a.clusters, func(name string) bool {
		cluster, coming := f.Clusters.named(name, asks)
		if !coming && cluster.IsPresent() {
			if assignment := reference.AssignmentOf(name, cluster.Value); assignment != "" {
				_, coming = f.Assignments.named(assignment, asks)
			}
		}
		return coming
	})
}

// named returns the client's state of a name, and whether another state is coming that it has not
// accepted yet. asks means that the client may still subscribe to the name.
func (t *Type) named(name string, asks bool) (r *resource.State, coming bool) {
	if t == nil || t.Scope() == Nothing {
		return nil, asks
	}
	subscribed, unsettled := t.Named(name)
	switch {
	case !subscribed:
		return nil, asks
	case unsettled:
		return nil, true
	}
	r = t.Has.Find(name)
	return r, t.Acks.Awaits(name) || t.Offers(name) && !r.IsPresent()
}

// left returns the clusters that calls of a gRPC client may still go to, and that its new routes do
// not lead to.
func (f *facts) left() reference.Hashes {
	if f.Routes == nil || f.Routes.Snapshot() == nil {
		return nil
	}
	out := reference.NewHashes(f.mayBeLeft())
	if len(out) == 0 {
		return nil
	}
	for r := range f.Routes.Snapshot().List.All() {
		out = slices.DeleteFunc(out, r.References().Clusters.Has)
	}
	return out
}

// mayBeLeft returns left, including clusters that other routes lead to.
func (f *facts) mayBeLeft() (out []uint64) {
	for hash, until := range f.m.draining {
		if !f.isPast(until) {
			f.by(until)
			out = append(out, hash)
		}
	}
	for i := range f.Routes.Acks.Unanswered {
		o := &f.Routes.Acks.Unanswered[i]
		if f.isOverdue(o) {
			return out
		}
		f.by(o.SentAt.Add(f.Timeout))
		out = append(out, o.Left...)
	}
	if d := f.Routes.Difference(); d != nil && d.Update != nil {
		out = append(out, f.leaves(f.Routes, d.Update)...)
	}
	return out
}
