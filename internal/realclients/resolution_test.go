// SPDX-License-Identifier: Apache-2.0

package realclients

import (
	"testing"

	networking "istio.io/api/networking/v1alpha3"
)

func byName(spec *networking.ServiceEntry) { spec.Resolution = networking.ServiceEntry_DNS }

// TestResolution changes a service from STATIC to DNS and back, each time with
// another backend, and changes the name: no call fails.
func TestResolution(t *testing.T) {
	eachClient(t, func(s *scene) {
		one, two, three := s.backend("one"), s.backend("two"), s.backend("three")
		p := s.plane(entry(one.entry()))
		c := s.call(p, target)
		c.follow("one")
		for range 3 {
			p.update(edited(byName, two.at("localhost")))
			c.follow("two")
			p.update(edited(byName, three.at("localhost")))
			c.follow("three")
			p.update(entry(one.entry()))
			c.follow("one")
		}
		p.accepted()
	})
}

// TestResolutionFromStart calls a service that is DNS when the client comes.
func TestResolutionFromStart(t *testing.T) {
	eachClient(t, func(s *scene) {
		one := s.backend("one")
		p := s.plane(edited(byName, one.at("localhost")))
		s.call(p, target).follow("one")
		p.accepted()
	})
}
