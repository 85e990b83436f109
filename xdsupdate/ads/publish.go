// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"runtime"
	"time"

	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// change is what a push makes of the table and the views.
type change struct {
	table *table
	// names are the built-in resources that may have changed.
	names []resourceName
	views []viewChange
	// provided is what the provider has, changes in what it may differ from before.
	provided *layer
	changes  Changes
	// leftOut are the endpoints and ports that are left out from now on.
	leftOut []leftOut
	// about are the objects that the push was asked for: see hintsOf.
	about []xdsupdate.ConfigKey
	// since is when the push was asked for.
	since time.Time
	// incomplete: a part of the first state is missing, so that no client may be
	// answered from it.
	incomplete bool
}

// everything reports whether everything may have changed.
func (ch *change) everything() bool { return ch.changes.Everything != nil }

// viewChange is what generators made of a view's overlay.
type viewChange struct {
	view    *view
	overlay overlay
	names   []resourceName
}

// publish makes a change visible and queues what is new to whom. Pushes come one
// at a time; it is called without the lock.
//
// It has two parts, so that nothing is encoded under the lock: the first finds out
// what clients are subscribed to and has it encoded, the second does everything
// else at once, for all that have subscribed until then. In between, all that
// clients are sent is of the moment before.
func (c *cache) publish(ch *change) {
	made := c.subscribed(ch)
	c.make(made)

	var waiting []*selection
	c.locked(func() { waiting = c.publishLocked(ch) })
	runtime.KeepAlive(made) // a layer finds what it has made only as long as somebody has it
	c.prepare(waiting)
}

func (c *cache) publishLocked(ch *change) (waiting []*selection) {
	c.table, c.provided = ch.table, ch.provided
	c.epoch++
	c.recent.add(c.epoch, ch.about)
	var touched []*selection
	mark := func(s *selection, name string) {
		if s.touched != c.epoch {
			s.touched, touched = c.epoch, append(touched, s)
		}
		s.dirty = append(s.dirty, name)
	}
	for _, v := range ch.views {
		v.view.overlay = v.overlay
	}
	c.concerned(ch, mark)
	waiting = append(c.makeReady(ch.views), c.unprepared...)
	c.unprepared = nil
	changed := touched[:0]
	for _, s := range touched {
		if s.refresh(c.source(s.view)) {
			s.since = ch.since
			changed = append(changed, s)
		}
	}
	for _, s := range changed { // all is new before anything is sent: the order of types counts
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
	from          source
	typeURL, name string
	// named: it is subscribed by name, not by a wildcard.
	named bool
	made  *resource // by make; may be nil
}

// subscribed returns what a change is about and clients are subscribed to. It takes
// the lock.
func (c *cache) subscribed(ch *change) []wanted {
	var overlays map[*view]overlay
	if len(ch.views) > 0 {
		overlays = make(map[*view]overlay, len(ch.views))
	}
	for _, v := range ch.views {
		overlays[v.view] = v.overlay
	}
	var out []wanted
	c.mu.Lock()
	defer c.mu.Unlock()
	c.concerned(ch, func(s *selection, name string) {
		from := source{table: ch.table, view: s.view, overlay: s.view.overlay, layer: ch.provided, failed: c.failures}
		if made, ok := overlays[s.view]; ok {
			from.overlay = made
		}
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
		w.made.make(c.failures)
	}
}

// concerned visits the selections that have a resource that a change is about. It
// may visit one twice.
func (c *cache) concerned(ch *change, visit func(s *selection, name string)) {
	for _, n := range ch.names {
		c.having(n, wildcardBuiltIn(n.typeURL) || ch.provided != nil, nil, visit)
	}
	for _, v := range ch.views {
		for _, n := range v.names {
			c.having(n, true, func(of *view) bool { return of == v.view }, visit)
		}
	}
	for _, n := range ch.changes.Names {
		var in func(*view) bool
		if n.In != nil {
			in = func(of *view) bool { return c.accepts(ch, func() bool { return n.In(of.View) }) }
		}
		c.having(resourceName{n.TypeURL, n.Name}, true, in, visit)
	}
	if ch.everything() {
		c.everythingOf(ch, visit)
	}
}

// accepts calls a function of a provider's changes. What it panics for is accepted.
func (c *cache) accepts(ch *change, f func() bool) (accepted bool) {
	err := ch.provided.of().call(func() error {
		accepted = f()
		return nil
	})
	c.failures.add(err)
	return accepted || err != nil
}

// having visits the selections that have a resource, in some views; nil: in all.
func (c *cache) having(n resourceName, wildcards bool, in func(*view) bool, visit func(s *selection, name string)) {
	each := func(list []*selection) {
		for _, s := range list {
			if in == nil || in(s.view) {
				visit(s, n.name)
			}
		}
	}
	if t := c.index[n.typeURL]; t != nil {
		if p := t.topics[n.name]; p != nil {
			each(p.selections)
		}
		if wildcards {
			each(t.wildcards)
		}
	}
	if n.typeURL == envoy.ClusterType {
		// Whether there is a cluster decides what becomes of its assignment.
		if t := c.index[envoy.LoadAssignmentType]; t != nil && t.topics[n.name] != nil {
			each(t.topics[n.name].selections)
		}
	}
}

// everythingOf visits the selections of views of which everything may have changed
// with everything that they have and may have.
func (c *cache) everythingOf(ch *change, visit func(s *selection, name string)) {
	for _, list := range c.selections {
		for _, s := range list {
			if !c.accepts(ch, func() bool { return ch.changes.Everything(s.view.View, s.typeURL) }) {
				continue
			}
			for _, name := range s.everything(ch, c.failures) {
				visit(s, name)
			}
		}
	}
}

// everything returns the names of what a selection has and may have.
func (s *selection) everything(ch *change, failed *failures) []string {
	out := namesOf(s.topics)
	if !s.wildcard || s.snapshot == nil {
		return out
	}
	for r := range s.snapshot.list.All() {
		out = append(out, r.name)
	}
	names, own, err := ch.provided.names(s.view.View, s.typeURL)
	if failed.undone(err); own || err != nil {
		return append(out, names...)
	}
	for name := range ch.table.names(s.view.View, s.typeURL) {
		out = append(out, name)
	}
	return out
}

// makeReady makes views ready whose generators were called for the first time,
// and everything with the first push. It returns the selections that have waited
// for this.
func (c *cache) makeReady(views []viewChange) []*selection {
	var out []*selection
	take := func(v *view) {
		out = append(out, v.waiting...)
		v.waiting = nil
	}
	first := !c.ready
	c.ready = true
	for _, v := range views {
		if !v.view.ready {
			v.view.ready = true
			take(v.view)
		}
	}
	if first {
		for _, v := range c.views {
			if v.ready {
				take(v)
			}
		}
	}
	return out
}
