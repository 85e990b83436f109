// SPDX-License-Identifier: Apache-2.0

package realclients

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	networking "istio.io/api/networking/v1alpha3"
)

// TestRestart ends the server and starts another one on its address with the same content: it sends
// the clients' current versions, and no call fails meanwhile. Clients are updated with changes made
// in between.
func TestRestart(t *testing.T) {
	eachClient(t, func(s *scene) {
		one, two, three := s.backend("one"), s.backend("two"), s.backend("three")
		p := s.plane(entry(one.entry()))
		c := s.call(p, target)
		c.follow("one")
		p.Update(entry(one.entry(), two.entry()))
		c.follow("one", "two")
		want := p.versions()

		p.Stop()
		c.follow("one", "two")
		equal := s.planeAt(p.Address, entry(one.entry(), two.entry()))
		if diff := cmp.Diff(want, equal.versions()); diff != "" {
			s.Errorf("versions of an equal server (-before +after):\n%s", diff)
		}
		c.follow("one", "two")
		equal.Accepted()

		equal.Stop()
		other := s.planeAt(p.Address, entry(three.entry()))
		c.follow("three")
		other.Update(entry(one.entry()))
		c.follow("one")
		other.Accepted()
	})
}

// TestRestartWhileAServiceIsMissing: a server that does not know the service takes
// the place of one that did, before or after the service went: calls fail, and
// recover when it comes.
func TestRestartWhileAServiceIsMissing(t *testing.T) {
	unusual := func(spec *networking.ServiceEntry) { spec.Ports[0].Number = 9090 }
	for name, target := range map[string]string{"port": "xds:///" + host + ":9090", "default port": "xds:///" + host} {
		for _, removed := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/removed=%v", name, removed), func(t *testing.T) {
				eachClient(t, func(s *scene) {
					one := s.backend("one")
					p := s.plane(edited(unusual, one.entry()))
					c := s.call(p, target)
					c.follow("one")
					if removed {
						p.remove(entry())
						c.fails()
					}
					p.Stop()
					next := s.planeAt(p.Address)
					next.poll("client that asks for all types", func() bool {
						proxies := next.Server.Proxies()
						return len(proxies) == 1 && len(proxies[0].Types) == 4
					})
					next.Applied()
					c.fails()
					next.Create(edited(unusual, one.entry()))
					c.recover("one")
					next.Accepted()
				})
			})
		}
	}
}
