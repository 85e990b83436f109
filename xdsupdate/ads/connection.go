// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"slices"
	"strconv"
	"strings"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/difference"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/reference"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/resource"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// connection is what one stream of one proxy is sent, and in which order. All of
// it is guarded by the cache's mutex.
type connection struct {
	cache  *cache
	delta  bool
	stream *stream

	identity
	node          *core.Node
	proxy         *registry.Proxy // nil before the first request
	view          *view           // nil before the first request, and at the end
	subscriptions map[string]*subscription
	order         []*subscription // in the order of sending
	// warming has the clusters that were sent anew before the client asked for
	// load assignments on this stream.
	warming []string
	nonce   uint64
	closed  bool
	phases  phases
	// queue are responses that the stream has not sent. It is not longer than one
	// request and one push of each type make it: the stream takes no request while
	// it is not empty, and a response opens no other.
	queue []response
}

// subscription returns the subscription of a type, a new one if there is none.
func (c *connection) subscription(typeURL string) (*subscription, error) {
	if s := c.subscriptions[typeURL]; s != nil {
		return s, nil
	}
	if limit := c.cache.maxTypes; limit > 0 && len(c.subscriptions) >= limit {
		return nil, exceeds(LimitTypes, "more than %d resource types on one stream", limit)
	}
	s := &subscription{conn: c, typeURL: strings.Clone(typeURL), sent: c.cache.none}
	if c.subscriptions == nil {
		c.subscriptions = make(map[string]*subscription)
	}
	c.subscriptions[s.typeURL] = s
	c.order = append(c.order, s)
	slices.SortFunc(c.order, func(a, b *subscription) int {
		if d := rank(a.typeURL) - rank(b.typeURL); d != 0 {
			return d
		}
		return strings.Compare(a.typeURL, b.typeURL)
	})
	return s, nil
}

// rank orders the types for make-before-break: nothing may point to what the
// client does not have yet (xDS protocol, "Eventual consistency considerations").
func rank(typeURL string) int {
	switch typeURL {
	case envoy.ClusterType:
		return 1
	case envoy.LoadAssignmentType:
		return 2
	case envoy.ListenerType:
		return 3
	case envoy.RouteType:
		return 4
	default:
		return 5
	}
}

// flush queues what is to be sent: first what is new or changed, clusters before
// the listeners and routes that may point to them, and then what is gone, in the
// opposite order; to some clients in phases. Nothing is sent to a client before the first
// state is published
// and the generators have been called for its view: until then its selections are
// not prepared. Of a connection that is closed no subscription has a selection.
func (c *connection) flush() {
	phased := c.phased()
	if phased {
		c.removeFirst()
	}
	for _, s := range c.order {
		if phased && s.typeURL == envoy.ListenerType {
			// Routes that listeners are to find are there first; others wait for them.
			if routes := c.subscriptions[envoy.RouteType]; routes != nil {
				routes.updates()
			}
		}
		s.updates()
	}
	pointing := false // something may still point to what is gone
	for _, s := range slices.Backward(c.order) {
		if s.typeURL == envoy.ClusterType || s.typeURL == envoy.LoadAssignmentType {
			if pointing || phased {
				continue
			}
		}
		s.removals()
		pointing = pointing || reference.HasClusters(s.typeURL) && !s.complete()
	}
	if phased {
		c.remove()
	}
	if len(c.queue) > 0 || c.substitutes() {
		c.stream.wake()
	}
}

// enqueue queues a response, after which what the client has sums up to sum. part: it is
// one of several that are sent at once; last: no other follows to the same difference.
// Before is what the client had before all of them.
func (c *connection) enqueue(s *subscription, content *difference.Content, before *resource.Snapshot, sum uint64, part, last bool) {
	c.nonce++
	complete := false
	if last && !s.refusals.dividing() {
		d := s.difference()
		complete = d == nil || d.Update == nil && d.Removal == nil
	}
	o := s.acks.Sent(resource.Version(sum))
	o.Nonce, o.SentIn, o.PushedAt = strconv.FormatUint(c.nonce, 10), c.cache.epoch, s.selection.since
	o.Listed, o.Full, o.IsPart, o.Fresh, o.SentAt = content.Listed, content.Full, part, content.Fresh, time.Now()
	o.Before = before
	if complete {
		o.Epoch = c.cache.epoch
	}
	c.queue = append(c.queue, response{content: content, version: o.Version, nonce: o.Nonce})
}

// close ends the connection.
func (c *connection) close() {
	if c.closed {
		return
	}
	c.closed, c.queue = true, nil
	c.phases.alarm.stop(c)
	for _, s := range c.order {
		s.refusals.stop(c)
		c.cache.unsubscribe(s)
	}
	c.cache.exit(c)
	c.cache.progressed()
}

// alarm calls a function at some time, unless its connection ends before. The zero value
// is not set. It is guarded by the cache's mutex.
type alarm struct {
	timer *time.Timer // nil: it is not set
	at    time.Time
}

// set has ring called at a time, with the cache's mutex held, unless it is set to an
// earlier one, and then what ring returns, without; that may be nil.
func (a *alarm) set(c *connection, at time.Time, ring func() (after func())) {
	if a.timer != nil && !at.Before(a.at) {
		return
	}
	a.stop(c)
	work := &c.stream.server.streams.work
	work.Add(1) // the stream is one of it
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

// stop unsets it.
func (a *alarm) stop(c *connection) {
	if a.timer == nil {
		return
	}
	if a.timer.Stop() {
		c.stream.server.streams.work.Done()
	}
	a.timer = nil
}
