// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"slices"
	"time"

	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/resource"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// hold is a state that listeners or routes wait to be sent.
type hold struct {
	target *resource.Snapshot
	epoch  uint64
	// needs are the clusters that they wait for.
	needs []string
}

// updatesBehind sends what need not wait of what is new.
func (s *subscription) updatesBehind(g gate) {
	s.conn.wakeAt(g.until)
	target := s.target()
	var list []*resource.State
	var needs []string
	waiting := false
	s.changed(target, func(r *resource.State) {
		switch {
		case s.isRefused(&g, r):
		case s.waits(&g, r):
			waiting = true
			needs = g.needs(needs, r)
		default:
			list = append(list, r)
		}
	})
	switch {
	case !waiting:
		s.held, s.waiting = nil, time.Time{}
	case s.waiting.IsZero():
		s.waiting = time.Now()
	}
	s.lingering = lingering{}
	if waiting && s.listsAll() {
		return
	}
	list, epoch := s.addHeld(list, &g)
	if s.held == nil && waiting && !g.closed && len(needs) > 0 {
		s.held = &hold{target: target, epoch: s.conn.cache.epoch, needs: needs}
	}
	if len(list) == 0 {
		if !waiting {
			s.keepsRefused(target)
		}
		return
	}
	if most := s.state().AtOnce(s.traits()); len(list) > most {
		list, epoch = list[:most], 0
	}
	s.sendSome(list, s.sent.WithAll(list), epoch)
}

// sendSome sends some of what is new, after which the client has something, and everything
// of an epoch; 0: of none.
func (s *subscription) sendSome(list []*resource.State, after *resource.Snapshot, epoch uint64) {
	slices.SortFunc(list, resource.CompareNames)
	from := s.sent
	update := s.state().NewContent(list, s.traits())
	update.After = after
	update.Divide(from, s.traits())
	s.answer(update, update.After, false)
	if n := len(s.acks.Unanswered); epoch > 0 && n > 0 {
		s.acks.Unanswered[n-1].Epoch = epoch
	}
}

// listsAll reports whether the client takes for removed what the first response on its stream
// does not list: it may have listeners that wait here, of a stream before.
func (s *subscription) listsAll() bool {
	return s.state().FullState() && !s.conn.delta && s.sent.List.Len() == 0
}

// changed visits what is new to the client in a snapshot.
func (s *subscription) changed(target *resource.Snapshot, visit func(r *resource.State)) {
	resource.Compare(s.sent, target, func(old, now *resource.State) {
		if now != nil && now.Marker == resource.Present && (old == nil || !now.Same(old)) {
			visit(now)
		}
	})
}

// addHeld adds what was held to a list of what is sent, if it can be sent now, and returns
// the epoch that the client then has everything of; 0: of none.
func (s *subscription) addHeld(list []*resource.State, g *gate) (out []*resource.State, epoch uint64) {
	h := s.held
	if h == nil {
		return list, 0
	}
	clusters := s.conn.subscriptions[envoy.ClusterType]
	for _, name := range h.needs {
		if g.isComing(name) {
			return list, 0
		}
		if !clusters.sent.Find(name).IsPresent() || !clusters.target().Find(name).IsPresent() {
			s.held = nil // it has gone meanwhile, with its endpoints
			return list, 0
		}
	}
	s.held, s.waiting = nil, time.Time{}
	target := s.target()
	newer := make(map[string]bool, len(list))
	for _, r := range list {
		newer[r.Name] = true
	}
	complete := true
	resource.Compare(s.sent, h.target, func(old, now *resource.State) {
		switch {
		case now == nil || now.Marker != resource.Present:
			complete = complete && old == nil
		case newer[now.Name] || old != nil && now.Same(old):
		case target.Find(now.Name) == nil || s.waits(g, now) || s.isRefused(g, now): // since it was held
			complete = false
		default:
			list = append(list, now)
		}
	})
	if complete {
		epoch = h.epoch
	}
	return list, epoch
}
