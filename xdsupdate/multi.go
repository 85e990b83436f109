// SPDX-License-Identifier: Apache-2.0

package xdsupdate

import (
	"slices"

	"github.com/pilotkit/pilotkit/internal/guard"
)

// Multi returns an updater that makes each call on all of the updaters, one
// after the other. Nil ones are left out: one that is left is returned as it is, and
// if there is none, Discard. If one of them panics the others are called
// all the same; then the call panics as the first of them did. Updaters of the host are called
// one call at a time. A call that comes during another call is made after it, by the same
// goroutine.
//
// It is an EndpointDeltaUpdater and a BatchUpdater. An updater of the host that does not take deltas
// gets complete lists, for which the endpoints are kept once more.
func Multi(updaters ...XDSUpdater) XDSUpdater {
	updaters = slices.DeleteFunc(slices.Clone(updaters), func(u XDSUpdater) bool { return u == nil })
	switch len(updaters) {
	case 0:
		return Discard{}
	case 1:
		return updaters[0]
	}
	m := &multi{}
	m.to = m
	for _, u := range updaters {
		m.targets = append(m.targets, targetOf(u))
	}
	shareSources(pushersOf(m))
	return m
}

// shareSources makes Pushers share the chains of caches, so that a commit of a cache is one update for each
// of them. A Pusher that follows caches already keeps its own chains.
func shareSources(pushers []*Pusher) {
	for i, p := range pushers {
		if i > 0 && p.sourcesNow().unused() {
			p.share(pushers[0].sourcesNow())
		}
	}
}

func (p *Pusher) share(s *sources) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sources = s
}

// multi is many updaters.
type multi struct {
	facade
	targets []target
}

func (m *multi) begin() {
	for _, t := range m.targets {
		t.begin()
	}
}

func (m *multi) commit(u *Update, by *stack) {
	for _, t := range m.targets {
		t.commit(u, by)
	}
}

func (m *multi) deliver(panicked func(*guard.PanicError)) {
	for _, t := range m.targets {
		t.deliver(panicked)
	}
}

func (m *multi) follows() bool { return slices.ContainsFunc(m.targets, target.follows) }
func (m *multi) holds() bool   { return slices.ContainsFunc(m.targets, target.holds) }

func (m *multi) shardsOf(w *shardWriter) []ShardKey {
	var out []ShardKey
	for _, t := range m.targets {
		out = append(out, t.shardsOf(w)...)
	}
	slices.SortFunc(out, compareShards)
	return slices.Compact(out)
}
