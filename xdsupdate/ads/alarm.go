// SPDX-License-Identifier: Apache-2.0

package ads

import "time"

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
