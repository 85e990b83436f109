// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"iter"
	"strings"
	"time"

	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/reference"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/resource"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/sequence"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// subscription returns the subscription to a type, and creates it if there is none. The limit of the number of types
// is 0 for none.
func (c *connection) subscription(typeURL string, limit int) (*subscription, error) {
	for s := range c.all() {
		if s.URL == typeURL {
			return s, nil
		}
	}
	if limit > 0 && len(c.Types) >= limit {
		return nil, exceeds(LimitTypes, "more than %d resource types on one stream", limit)
	}
	s := &subscription{conn: c}
	s.Type = sequence.Type{URL: strings.Clone(typeURL), Target: s, Has: noResources}
	c.Add(&s.Type)
	return s, nil
}

// noResources is what every client has at first; as it is one pointer, they share responses.
var noResources = &resource.Snapshot{} //nolint:gochecknoglobals // immutable

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

// flush carries out plans until no step is left. A client gets its first response when the first state is published;
// until then its selections are not prepared. A connection may be closed while a request is handled; then it has no
// more steps and no alarm.
func (c *connection) flush() {
	if c.closed {
		return
	}
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
	if len(c.Queue) > 0 || c.substitution() != nil {
		c.stream.wake()
	}
}

// wakeAt has the connection flushed at a time, or before, unless it is closed until then; zero is never.
func (c *connection) wakeAt(at time.Time) {
	if at.IsZero() || c.alarm.timer != nil && !at.Before(c.alarm.at) {
		return
	}
	c.sleep()
	work := &c.stream.server.streams.work
	work.Add(1) // the stream's own count keeps work above zero
	var timer *time.Timer
	timer = time.AfterFunc(time.Until(at), func() {
		defer work.Done()
		var late []string
		c.cache.locked(func() {
			if c.alarm.timer == timer { // it was not stopped too late
				c.alarm = alarm{}
				late = c.late()
				c.flush()
				c.cache.progressed()
			}
		})
		c.stream.overdue(late, c.Timeout)
	})
	c.alarm = alarm{timer, at}
}

// sleep unsets the alarm.
func (c *connection) sleep() {
	if c.alarm.timer != nil && c.alarm.timer.Stop() {
		c.stream.server.streams.work.Done()
	}
	c.alarm = alarm{}
}

// late returns the types with overdue responses that were not reported, and that other resources may wait for.
func (c *connection) late() (types []string) {
	now := time.Now()
	for s := range c.all() {
		waitedFor := s.URL == envoy.ClusterType || reference.HasClusters(s.URL) || s.URL == envoy.LoadAssignmentType && !c.Phased()
		if !waitedFor || len(s.Acks.Unanswered) == 0 {
			continue
		}
		if o := &s.Acks.Unanswered[0]; !o.Overdue && c.Overdue(o, now) {
			o.Overdue = true
			types = append(types, s.URL)
		}
	}
	return types
}

// close ends the connection.
func (c *connection) close() {
	if c.closed {
		return
	}
	c.closed, c.Queue = true, nil
	c.sleep()
	for s := range c.all() {
		c.cache.unsubscribe(s)
	}
	c.cache.unlist(c)
	delete(c.cache.conns, c)
	c.cache.progressed()
}
