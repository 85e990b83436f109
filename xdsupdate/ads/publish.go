// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"time"

	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// change is what a push makes of the table and the views.
type change struct {
	table *table
	// names are the built-in resources that may have changed.
	names []resourceName
	views []viewChange
	// since is when the push was asked for.
	since time.Time
}

// viewChange is what generators made of a view's overlay.
type viewChange struct {
	view    *view
	overlay overlay
	names   []resourceName
}

// publish makes a change visible and queues what is new to whom. Pushes come one
// at a time; it is called without the lock.
func (c *cache) publish(ch change) {
	c.mu.Lock()
	c.table = ch.table
	c.epoch++
	touched := c.touch(nil, ch.names, nil)
	for _, v := range ch.views {
		v.view.overlay = v.overlay
		touched = c.touch(touched, v.names, v.view)
	}
	waiting := c.makeReady(ch.views)
	// A selection is refreshed in two steps, so that nothing is encoded under the
	// lock, except what changes in between.
	var unencoded []*resource
	for _, s := range touched {
		if s.snapshot != nil {
			unencoded = append(unencoded, s.unencoded(c.source(s.view), s.dirty)...)
		}
	}
	c.mu.Unlock()

	encodeAll(unencoded, c.report)

	c.mu.Lock()
	c.since = ch.since
	changed := touched[:0]
	for _, s := range touched {
		if s.refresh(c.source(s.view)) {
			changed = append(changed, s)
		}
	}
	for _, s := range changed { // all is new before anything is sent: the order of types counts
		s.flush()
	}
	c.since = time.Time{}
	c.progressed()
	c.mu.Unlock()
	if len(waiting) > 0 {
		c.prepare(waiting)
	}
}

// flush flushes the connections of all subscriptions.
func (s *selection) flush() {
	for _, sub := range s.subscribers {
		sub.conn.flush()
	}
}

// touch marks resources as dirty where somebody is subscribed to them, in one
// view or, without, in all, and appends the selections.
func (c *cache) touch(touched []*selection, names []resourceName, in *view) []*selection {
	mark := func(t *typeIndex, name string) {
		if p := t.topics[name]; p != nil {
			for _, s := range p.selections {
				touched = s.mark(touched, name, in)
			}
		}
	}
	for _, n := range names {
		if t := c.index[n.typeURL]; t != nil {
			mark(t, n.name)
			if in != nil || wildcardBuiltIn(n.typeURL) {
				for _, s := range t.wildcards {
					touched = s.mark(touched, n.name, in)
				}
			}
		}
		if in != nil && n.typeURL == envoy.ClusterType {
			// Whether there is a cluster decides what becomes of its assignment.
			if t := c.index[envoy.LoadAssignmentType]; t != nil {
				mark(t, n.name)
			}
		}
	}
	return touched
}

func (s *selection) mark(touched []*selection, name string, in *view) []*selection {
	if in != nil && s.view != in {
		return touched
	}
	if len(s.dirty) == 0 {
		touched = append(touched, s)
	}
	s.dirty = append(s.dirty, name)
	return touched
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
