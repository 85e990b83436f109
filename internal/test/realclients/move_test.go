// SPDX-License-Identifier: Apache-2.0

package realclients

import "testing"

// TestMove adds, exchanges and removes endpoints: calls follow, and none fails.
func TestMove(t *testing.T) {
	eachClient(t, func(s *scene) {
		one, two, three := s.backend("one"), s.backend("two"), s.backend("three")
		p := s.plane(entry(one.entry()))
		c := s.call(p, target)
		c.follow("one")
		p.Update(entry(one.entry(), two.entry()))
		c.follow("one", "two")
		p.Update(entry(two.entry(), three.entry()))
		c.follow("two", "three")
		p.Update(entry(three.entry()))
		c.follow("three")
		p.Update(entry(one.entry()))
		c.follow("one")
		p.Applied()
		p.Accepted()
	})
}
