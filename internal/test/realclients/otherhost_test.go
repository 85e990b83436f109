// SPDX-License-Identifier: Apache-2.0

package realclients

import (
	"testing"

	networking "istio.io/api/networking/v1alpha3"
)

// TestTrafficToAnotherHost: a VirtualService leads the calls of one host to another
// service, from the start, and when it comes and goes under load.
func TestTrafficToAnotherHost(t *testing.T) {
	eachClient(t, func(s *scene) {
		there := edited(func(e *networking.ServiceEntry) { e.Hosts = []string{"there.example.com"} }, &networking.WorkloadEntry{
			Address: "127.0.0.1", Ports: map[string]uint32{"grpc": startEcho(s.T, "there").port},
		})
		there.Name = "there"
		moved := s.virtualService(`{"route": [{"destination": {"host": "there.example.com"}}]}`)
		p := s.trafficPlane(s.versions("here"), there, moved)
		c := s.call(p, target)
		c.follow("there")
		for range 5 {
			p.remove(moved)
			c.follow("here")
			p.Create(moved)
			c.follow("there")
		}
		p.Accepted()
	})
}
