// SPDX-License-Identifier: Apache-2.0

package realclients

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestRestart ends the server and starts another one on its address that knows
// the same: what clients have is what it sends, version for version, and no call
// fails meanwhile. Changes that were made between are followed.
func TestRestart(t *testing.T) {
	eachClient(t, func(s *scene) {
		one, two, three := s.backend("one"), s.backend("two"), s.backend("three")
		p := s.plane(entry(one.entry()))
		c := s.call(p, target)
		c.follow("one")
		p.update(entry(one.entry(), two.entry()))
		c.follow("one", "two")
		want := p.versions()

		p.stop()
		c.follow("one", "two")
		equal := s.planeAt(p.address, entry(one.entry(), two.entry()))
		if diff := cmp.Diff(want, equal.versions()); diff != "" {
			s.Errorf("versions of an equal server (-before +after):\n%s", diff)
		}
		c.follow("one", "two")
		equal.accepted()

		equal.stop()
		other := s.planeAt(p.address, entry(three.entry()))
		c.follow("three")
		other.update(entry(one.entry()))
		c.follow("one")
		other.accepted()
	})
}
