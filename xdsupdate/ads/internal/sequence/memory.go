// SPDX-License-Identifier: Apache-2.0

package sequence

import (
	"maps"
	"slices"
	"time"

	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/difference"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/resource"
)

// Memory is the part of a client's state that a plan hands to the next one. It is a value: a plan replaces
// its maps and slices and never changes them. The zero value is that of a new client.
type Memory struct {
	waits [others + 1]wait
	// removal is the present removal of clusters and assignments, or nil.
	removal *removal
	// draining are the clusters, by the hashes of their names, that listeners have stopped sending
	// connections to, or routes of a gRPC client calls, and until when they stay.
	draining map[uint64]time.Time
	// awaited are the route configurations that a changed listener needs before it is in use, since awaitedSince.
	awaited      []string
	awaitedSince time.Time
	// switching means that changed listeners were sent. switched is when the client last ACKed such.
	switching bool
	switched  time.Time
	// tightened are the route configurations whose listeners were sent with stricter filters, until the client
	// uses these listeners.
	tightened []string
	// returned is when the first plan was made for a client that has come back and lists its resources.
	returned time.Time
	// announced are the announcements that a gRPC client has, by the names of its route configurations.
	announced map[string]announcedState
}

// wait is the memory of one type.
type wait struct {
	// since is when the first resource began to wait; zero without one.
	since time.Time
	// held is a state that listeners or routes wait for, or nil.
	held *held
	// from and to are two snapshots whose difference is not sent before time has passed, or while the client
	// rejects a listener. Callers of WaitApplied do not wait for it.
	from, to *resource.Snapshot
}

// held is a state that waits. A client reaches it even if there is always a newer state that has to
// wait, too.
type held struct {
	target *resource.Snapshot
	epoch  uint64
	// needs are the clusters that it waits for.
	needs []string
	// listeners are the listeners of the same push, for a state of routes; nil if the client has no subscription.
	listeners *resource.Snapshot
}

// of returns the memory of a type. No rule is about the others.
func (m *Memory) of(t *Type) *wait { return &m.waits[t.slot] }

// linger notes that callers of WaitApplied do not wait for the rest of a type.
func (m *Memory) linger(t *Type) { m.of(t).from, m.of(t).to = t.Has, t.Snapshot() }

// complete reports whether the client was sent all resources of a type, except those that callers of
// WaitApplied do not wait for.
func (m *Memory) complete(t *Type) bool {
	if t.Scope() == Nothing {
		return true
	}
	if t.Snapshot() == nil || t.MustAnswer && t.Open || len(t.Apart) > 0 || t.Searching() {
		return false
	}
	d := t.Difference()
	if d == nil || d.Update == nil && d.Removal == nil {
		return true
	}
	w := m.of(t)
	return w.to != nil && w.from == t.Has && w.to == t.Snapshot()
}

// Applied reports whether the client was sent everything of a type, and has answered.
func (m *Memory) Applied(t *Type) bool { return len(t.Acks.Unanswered) == 0 && m.complete(t) }

// drain keeps clusters for some time after their last use.
func (m *Memory) drain(clusters []uint64, now time.Time, delay time.Duration) {
	if len(clusters) == 0 {
		return
	}
	next := make(map[uint64]time.Time, len(clusters))
	maps.Copy(next, m.draining)
	maps.DeleteFunc(next, func(_ uint64, until time.Time) bool { return !until.After(now) })
	for _, hash := range clusters {
		next[hash] = now.Add(delay)
	}
	m.draining = next
}

// note notes that the client is sent a response.
func (c *Client) note(t *Type, content *difference.Content, now Moment) {
	switch m := &c.Memory; {
	case !c.Phased():
	case t == c.Clusters && m.removal != nil:
		m.removal = m.removal.with(content.Listed)
	case t == c.Listeners && t.Has.List.Len() > 0:
		m.noteListeners(c, content, now.Time)
	}
}

// noteListeners notes that the client is sent listeners, after others.
func (m *Memory) noteListeners(c *Client, content *difference.Content, now time.Time) {
	from := c.Listeners.Has
	var left []uint64
	tightened, awaited := slices.Clone(m.tightened), slices.Clone(m.awaited)
	for _, r := range content.Listed {
		before := from.Find(r.Name)
		tightened = append(tightened, before.References().Tightened(r.References())...)
		m.switching = m.switching || before != nil || len(tightened) > 0
		for _, name := range r.References().Routes {
			if c.Routes == nil || c.Routes.Has.Find(name) == nil {
				awaited, m.awaitedSince = append(awaited, name), now
			}
		}
		left = before.References().Clusters.Without(left, r.References().Clusters)
	}
	for _, name := range content.Removed {
		left = from.Find(name).References().Clusters.Without(left, nil)
	}
	if c.RemovalDelay > 0 {
		m.drain(left, now, c.RemovalDelay)
	}
	m.tightened, m.awaited = tightened, needed(awaited, content.After)
}

// needed returns the route configurations that a listener still references: a client that is sent listeners
// faster than their routes never subscribes to those in between.
func needed(awaited []string, listeners *resource.Snapshot) []string {
	return slices.DeleteFunc(awaited, func(name string) bool {
		for r := range listeners.List.All() {
			if slices.Contains(r.References().Routes, name) {
				return false
			}
		}
		return true
	})
}
