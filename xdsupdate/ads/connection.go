// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"iter"
	"strings"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/reference"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/sequence"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// connection is one stream of one proxy: its state, and its subscriptions. It carries out the plans
// of package sequence. The cache's mutex guards all of it.
//
// Its queue is bounded by the responses to one request and one push of each type, because the
// stream takes no request while the queue is not empty, and sending a response does not allow
// another one.
type connection struct {
	sequence.Client
	cache  *cache
	stream *stream

	identity
	node   *core.Node
	proxy  *registry.Proxy // nil before the first request
	view   view            // zero before the first request
	closed bool
	// alarm flushes the connection when it is time for another plan.
	alarm alarm
}

// subscription returns the subscription to a type, and creates it if there is none.
func (c *connection) subscription(typeURL string) (*subscription, error) {
	for s := range c.all() {
		if s.URL == typeURL {
			return s, nil
		}
	}
	if limit := c.cache.maxTypes; limit > 0 && len(c.Types) >= limit {
		return nil, exceeds(LimitTypes, "more than %d resource types on one stream", limit)
	}
	s := &subscription{conn: c}
	s.Type = sequence.Type{URL: strings.Clone(typeURL), Target: s, Has: c.cache.none}
	c.Add(&s.Type)
	return s, nil
}

// all yields the subscriptions, in the order of sending.
func (c *connection) all() iter.Seq[*subscription] {
	return func(yield func(*subscription) bool) {
		for _, t := range c.Types {
			if !yield(t.Target.(*subscription)) {
				return
			}
		}
	}
}

// flush carries out plans until no step is left. A client gets its first response when the first
// state is published; until then its selections are not prepared. The subscriptions of a closed
// connection have no selection.
func (c *connection) flush() {
	now := sequence.Moment{Time: time.Now(), Epoch: c.cache.epoch}
	for s := range c.all() {
		s.rejections.retryDue(now.Time)
	}
	for {
		plan := sequence.Plan(&c.Client, now)
		c.Memory = plan.Memory
		c.wakeAt(plan.Look)
		if plan.To == nil {
			break
		}
		s := plan.To.Target.(*subscription)
		if plan.Apart {
			if plan.Content = s.takeApart(); plan.Content == nil {
				continue
			}
			plan.After, plan.Last = plan.Content.After, true
		}
		plan.PushedAt = s.selection.since
		c.Sent(plan.Step, now)
	}
	if len(c.Queue) > 0 || c.substitutes() {
		c.stream.wake()
	}
}

// wakeAt has the connection flushed at a time; zero is never.
func (c *connection) wakeAt(at time.Time) {
	if at.IsZero() {
		return
	}
	c.alarm.set(c, at, func() func() {
		if c.closed {
			return nil
		}
		late := c.late()
		c.flush()
		c.cache.progressed()
		return late
	})
}

// isWaitedFor reports whether other resources may wait for ACKs of responses of the type.
func (s *subscription) isWaitedFor() bool {
	return s.URL == envoy.ClusterType || reference.HasClusters(s.URL) || s.URL == envoy.LoadAssignmentType && !s.conn.Phased()
}

// late returns a function that reports overdue responses, or nil if all were reported.
func (c *connection) late() (report func()) {
	var types []string
	now := time.Now()
	for s := range c.all() {
		if !s.isWaitedFor() || len(s.Acks.Unanswered) == 0 {
			continue
		}
		if o := &s.Acks.Unanswered[0]; !o.Overdue && c.Overdue(o, now) {
			o.Overdue = true
			types = append(types, s.URL)
		}
	}
	if types == nil {
		return nil
	}
	return func() { c.stream.overdue(types, c.Timeout) }
}

// close ends the connection.
func (c *connection) close() {
	if c.closed {
		return
	}
	c.closed, c.Queue = true, nil
	c.alarm.stop(c)
	for s := range c.all() {
		s.rejections.stop()
		c.cache.unsubscribe(s)
	}
	c.cache.unlist(c)
	delete(c.cache.conns, c)
	c.cache.progressed()
}

// alarm calls a function at a time, unless its connection ends before. The zero value is not set.
// The cache's mutex guards it.
type alarm struct {
	timer *time.Timer // nil if the alarm is not set
	at    time.Time
}

// set schedules ring for a time, unless the alarm is set to an earlier one. ring is called with the
// cache's mutex held. If it returns a function, that is called without the mutex.
func (a *alarm) set(c *connection, at time.Time, ring func() (after func())) {
	if a.timer != nil && !at.Before(a.at) {
		return
	}
	a.stop(c)
	work := &c.stream.server.streams.work
	work.Add(1) // the stream's own count keeps work above zero
	var timer *time.Timer
	timer = time.AfterFunc(time.Until(at), func() {
		defer work.Done()
		var after func()
		c.cache.locked(func() {
			if a.timer == timer { // it was not stopped too late
				a.timer = nil
				after = ring()
			}
		})
		if after != nil {
			after()
		}
	})
	a.timer, a.at = timer, at
}

// stop unsets the alarm.
func (a *alarm) stop(c *connection) {
	if a.timer == nil {
		return
	}
	if a.timer.Stop() {
		c.stream.server.streams.work.Done()
	}
	a.timer = nil
}
