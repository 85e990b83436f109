// SPDX-License-Identifier: Apache-2.0

package realclients

import (
	"testing"

	networking "istio.io/api/networking/v1alpha3"
)

// in returns an endpoint with a locality and a weight.
func in(locality string, weight uint32, e *networking.WorkloadEntry) *networking.WorkloadEntry {
	e.Locality, e.Weight = locality, weight
	return e
}

// TestLocalityWeights: localities share the calls by their weights, which are the sums of the
// weights of their endpoints. Inside a locality round robin ignores weights.
func TestLocalityWeights(t *testing.T) {
	eachClient(t, func(s *scene) {
		one, two, three := s.backend("one"), s.backend("two"), s.backend("three")
		p := s.plane(entry(
			in("east/a", 1, one.entry()), in("west/b", 2, two.entry()), in("west/b", 1, three.entry())))
		c := s.call(p, target)
		c.follow("one", "two", "three")
		c.shares(map[string]float64{"one": 0.25, "two": 0.375, "three": 0.375})

		p.Update(entry(in("east/a", 9, one.entry()), in("west/b", 1, two.entry())))
		c.follow("one", "two")
		c.shares(map[string]float64{"one": 0.9, "two": 0.1})

		p.Update(entry(in("west/a", 1, one.entry()), in("west/b", 1, two.entry())))
		c.follow("one", "two")
		p.Applied()
		c.shares(map[string]float64{"one": 0.5, "two": 0.5})
		p.Accepted()
	})
}

// shares returns when the backends share the calls as wanted. Clients choose at random, and use
// their old configuration for a moment, so a sample may be off.
func (c *caller) shares(want map[string]float64) {
	c.t.Helper()
	const sample, samples, tolerance = 400, 20, 0.1 // 4 standard deviations of a half
	var got map[string]int
	for range samples {
		got = c.count(sample)
		if within(got, want, sample, tolerance) {
			return
		}
	}
	c.t.Fatalf("of %d calls the backends answered %v, want shares of %v", sample, got, want)
}

func within(got map[string]int, want map[string]float64, calls, tolerance float64) bool {
	sum := 0.0
	for name, share := range want {
		answered := float64(got[name])
		if answered < calls*(share-tolerance) || answered > calls*(share+tolerance) {
			return false
		}
		sum += answered
	}
	return sum == calls
}
