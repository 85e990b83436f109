// SPDX-License-Identifier: Apache-2.0

package registrytest

import (
	"math/rand/v2"
	"slices"

	"github.com/pilotkit/pilotkit/registry"
)

func historyChecks() []check {
	return []check{
		{
			Name: "History", Source: sourcePackage,
			Promise: "after any history, reads show what is there, and the events are the differences between the states",
			Run:     history,
		},
	}
}

// history makes random changes with a fixed seed. It uses few services, so that changes often
// conflict.
func history(s *suite) {
	random := rand.New(rand.NewPCG(1, 2))
	type key struct {
		hostname  registry.Hostname
		namespace string
	}
	there := map[key]fixture{}
	r := s.recorder()
	var all []call
	for range 300 {
		f := randomFixture(random)
		k := key{f.hostname, f.namespace}
		old, exists := there[k]
		var want []string
		switch {
		case exists && random.IntN(3) == 0:
			s.remove(f)
			delete(there, k)
			want = append(want, "delete "+f.service().Key())
		default:
			s.set(f)
			there[k] = f
			if !exists {
				want = append(want, "add "+f.service().Key())
			} else if !slices.Equal(old.ports, f.ports) {
				want = append(want, "update "+f.service().Key())
			}
		}
		fixtures := make([]fixture, 0, len(there))
		for _, f := range there {
			fixtures = append(fixtures, f)
		}
		s.expectServices(byKey(fixtures)...)
		s.expectRandomProxy(random, fixtures)
		all = append(all, s.expectCalls(r, want...)...)
		if s.Failed() {
			return
		}
	}
	s.consistent(all)
}

func randomFixture(random *rand.Rand) fixture {
	f := fixture{
		hostname:  []registry.Hostname{"a.example.com", "b.example.com", "c.example.com"}[random.IntN(3)],
		namespace: []string{"one", "two"}[random.IntN(2)],
		ports:     [][]uint32{{80}, {80, 81}, {443}}[random.IntN(3)],
	}
	for _, a := range []string{"10.0.0.1", "10.0.0.2", "10.0.0.3"} {
		if random.IntN(2) == 0 {
			f.addresses = append(f.addresses, a)
		}
	}
	return f
}

// expectRandomProxy compares the instances of a proxy with the fixtures.
func (s *suite) expectRandomProxy(random *rand.Rand, fixtures []fixture) {
	s.Helper()
	address, namespace := "10.0.0.2", []string{"", "one", "two"}[random.IntN(3)]
	var want []string
	for _, f := range fixtures {
		if namespace != "" && f.namespace != namespace || !slices.Contains(f.addresses, address) {
			continue
		}
		for _, e := range f.with(address).describeEndpoints(0) {
			want = append(want, f.service().Key()+" "+e)
		}
	}
	s.expectProxy(namespace, []string{address}, want...)
}
