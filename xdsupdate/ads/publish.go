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
	// leftOut are the endpoints that are left out from now on.
	leftOut []leftOut
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
//
// It has two parts, so that nothing is encoded under the lock: the first finds out
// what clients are subscribed to and has it encoded, the second does everything
// else at once, for all that have subscribed until then. In between, all that
// clients are sent is of the moment before.
func (c *cache) publish(ch change) {
	c.mu.Lock()
	var wanted []*resource
	c.concerned(ch.names, nil, func(s *selection, name string) {
		wanted = append(wanted, s.find(source{table: ch.table, view: s.view, overlay: s.view.overlay}, name))
	})
	for _, v := range ch.views {
		c.concerned(v.names, v.view, func(s *selection, name string) {
			wanted = append(wanted, s.find(source{table: ch.table, view: s.view, overlay: v.overlay}, name))
		})
	}
	c.mu.Unlock()

	encodeAll(wanted, c.report)

	c.mu.Lock()
	waiting := c.publishLocked(ch)
	c.mu.Unlock()
	c.prepare(waiting)
}

func (c *cache) publishLocked(ch change) (waiting []*selection) {
	c.table = ch.table
	c.epoch++
	var touched []*selection
	mark := func(s *selection, name string) {
		if len(s.dirty) == 0 {
			touched = append(touched, s)
		}
		s.dirty = append(s.dirty, name)
	}
	c.concerned(ch.names, nil, mark)
	for _, v := range ch.views {
		v.view.overlay = v.overlay
		c.concerned(v.names, v.view, mark)
	}
	waiting = c.makeReady(ch.views)
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

// concerned visits the selections that have a resource, in one view or, without,
// in all.
func (c *cache) concerned(names []resourceName, in *view, visit func(s *selection, name string)) {
	each := func(list []*selection, name string) {
		for _, s := range list {
			if in == nil || s.view == in {
				visit(s, name)
			}
		}
	}
	for _, n := range names {
		if t := c.index[n.typeURL]; t != nil {
			if p := t.topics[n.name]; p != nil {
				each(p.selections, n.name)
			}
			if in != nil || wildcardBuiltIn(n.typeURL) {
				each(t.wildcards, n.name)
			}
		}
		if in != nil && n.typeURL == envoy.ClusterType {
			// Whether there is a cluster decides what becomes of its assignment.
			if t := c.index[envoy.LoadAssignmentType]; t != nil && t.topics[n.name] != nil {
				each(t.topics[n.name].selections, n.name)
			}
		}
	}
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
