// SPDX-License-Identifier: Apache-2.0

package realclients

import (
	"testing"

	networking "istio.io/api/networking/v1alpha3"
)

func byName(spec *networking.ServiceEntry) { spec.Resolution = networking.ServiceEntry_DNS }

// TestResolution changes a service that is DNS when the client comes to STATIC and
// back, each time with another backend, and changes its name: no call fails.
func TestResolution(t *testing.T) {
	eachClient(t, func(s *scene) {
		one, two, three := s.backend("one"), s.backend("two"), s.backend("three")
		p := s.plane(edited(byName, three.at("localhost")))
		c := s.call(p, target)
		c.follow("three")
		for range 3 {
			p.Update(entry(one.entry()))
			c.follow("one")
			p.Update(edited(byName, two.at("localhost")))
			c.follow("two")
			p.Update(edited(byName, three.at("localhost")))
			c.follow("three")
		}
		p.Accepted()
	})
}
