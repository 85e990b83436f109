// SPDX-License-Identifier: Apache-2.0

package realclients

import (
	"testing"

	networking "istio.io/api/networking/v1alpha3"
)

// TestRemoval removes a service and adds it again, equal and with another
// backend: calls fail while there is none, and recover.
func TestRemoval(t *testing.T) {
	eachClient(t, func(s *scene) {
		one, two := s.backend("one"), s.backend("two")
		p := s.plane(entry(one.entry()))
		c := s.call(p, target)
		c.follow("one")
		c.recovers(func() { p.remove(entry()) }, func() { p.Create(entry(one.entry())) }, "one")
		p.remove(entry())
		c.fails()
		p.Create(entry(two.entry()))
		c.recover("two")
		p.Accepted()
	})
}

// TestExportTo hides a service from the namespace of the client and shows it
// again.
func TestExportTo(t *testing.T) {
	eachClient(t, func(s *scene) {
		one := s.backend("one")
		exported := func(to string) func(*networking.ServiceEntry) {
			return func(spec *networking.ServiceEntry) { spec.ExportTo = []string{to} }
		}
		p := s.plane(entry(one.entry()))
		c := s.call(p, target)
		c.follow("one")
		c.recovers(
			func() { p.Update(edited(exported("."), one.entry())) },
			func() { p.Update(edited(exported("apps"), one.entry())) }, "one")
		p.Accepted()
	})
}

// TestLateService: the service comes after the client, whose calls wait for it.
func TestLateService(t *testing.T) {
	eachClient(t, func(s *scene) {
		one := s.backend("one")
		p := s.plane()
		c := s.call(p, target)
		p.connected()
		p.Create(entry(one.entry()))
		c.follow("one")
		p.Accepted()
	})
}
