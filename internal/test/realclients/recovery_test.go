// SPDX-License-Identifier: Apache-2.0

package realclients

import (
	"testing"
	"time"
)

// TestEndpointsOnly removes all endpoints of a service, and adds one again.
func TestEndpointsOnly(t *testing.T) {
	eachClient(t, func(s *scene) {
		one := s.backend("one")
		p := s.plane(entry(one.entry()))
		c := s.call(p, target)
		c.follow("one")
		c.recovers(func() { p.Update(entry()) }, func() { p.Update(entry(one.entry())) }, "one")
		p.Accepted()
	})
}

// recovers removes a service and adds it again several times. The duration of a recovery depends on
// the load of the machine; the best time shows the behaviour of client and server, if the client
// had the time to make calls meanwhile.
func (c *caller) recovers(takeAway, restore func(), backend string) {
	c.t.Helper()
	const atMost, idle = time.Second, 200 // failed calls, of about 400 that an idle machine makes in a second
	best, calls := time.Duration(1<<63-1), 0
	for range 3 {
		takeAway()
		c.fails()
		start, failed := time.Now(), c.failed
		restore()
		if took := c.recover(backend).Sub(start); took < best {
			best, calls = took, c.failed-failed
		}
	}
	c.t.Logf("the first answer came %v and %d calls after the service", best, calls)
	if best > atMost && calls > idle {
		c.t.Errorf("the first answer came %v and %d calls after the service, want at most %v", best, calls, atMost)
	}
}
