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
		c.recovers(func() { p.update(entry()) }, func() { p.update(entry(one.entry())) }, "one")
		p.accepted()
	})
}

// recovers takes a service away and brings it back several times. Recovery takes
// as long as the machine is busy; the best time shows what client and server do.
func (c *caller) recovers(takeAway, bringBack func(), backend string) {
	c.t.Helper()
	const atMost = time.Second
	best := time.Duration(1<<63 - 1)
	for range 3 {
		takeAway()
		c.fails()
		start := time.Now()
		bringBack()
		best = min(best, c.recover(backend).Sub(start))
	}
	c.t.Logf("the first answer came %v after the service", best)
	if best > atMost {
		c.t.Errorf("the first answer came %v after the service, want at most %v", best, atMost)
	}
}
