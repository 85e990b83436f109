// SPDX-License-Identifier: Apache-2.0

package realclients

import (
	"testing"

	networking "istio.io/api/networking/v1alpha3"
)

// ports returns an edit that gives a service ports by name.
func ports(numbers map[string]uint32, protocol string) func(*networking.ServiceEntry) {
	return func(spec *networking.ServiceEntry) {
		spec.Ports = nil
		for _, name := range []string{"grpc", "admin"} {
			if number, ok := numbers[name]; ok {
				spec.Ports = append(spec.Ports, &networking.ServicePort{Name: name, Number: number, Protocol: protocol})
			}
		}
	}
}

// TestPorts adds a port to a service, lets it move to other backends, removes
// it and changes the protocol, while another port is called: no call of that one
// fails.
func TestPorts(t *testing.T) {
	eachClient(t, func(s *scene) {
		one, two, three := s.backend("one"), s.backend("two"), s.backend("three")
		with := func(b, admin *backend) *networking.WorkloadEntry {
			return &networking.WorkloadEntry{Address: "127.0.0.1", Ports: map[string]uint32{"grpc": b.port, "admin": admin.port}}
		}
		p := s.plane(entry(one.entry()))
		c := s.call(p, target)
		c.follow("one")

		both := ports(map[string]uint32{"grpc": 80, "admin": 81}, "GRPC")
		p.Update(edited(both, with(one, two)))
		p.Applied()
		admin := s.call(p, "xds:///"+host+":81")
		admin.follow("two")
		c.follow("one")
		p.Update(edited(both, with(one, three)))
		admin.follow("three")
		c.follow("one")

		// The names change places, so both targets change their backends.
		p.Update(edited(ports(map[string]uint32{"grpc": 81, "admin": 80}, "GRPC"), with(one, two)))
		admin.follow("one")
		c.follow("two")

		p.Update(edited(ports(map[string]uint32{"grpc": 80}, "GRPC"), two.entry()))
		admin.fails()
		c.follow("two")
		p.Update(edited(ports(map[string]uint32{"grpc": 80}, "HTTP2"), three.entry()))
		c.follow("three")
		p.Accepted()
	})
}
