// SPDX-License-Identifier: Apache-2.0

package serviceentry_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/memory"
)

// BenchmarkChange changes one of n ServiceEntries through the config store.
// "unchanged" changes only an annotation that means nothing; "same" changes
// nothing at all, which the store finds out. "store" is the cost of the config
// store alone, which is part of the others.
func BenchmarkChange(b *testing.B) {
	kinds := []struct {
		name string
		edit func(i int) configstore.Config
	}{
		{"endpoints", func(i int) configstore.Config { return standardEntry(i, 1) }},
		{"port", otherPort},
		{"host", otherHost},
		{"unchanged", annotated},
		{"same", func(i int) configstore.Config { return standardEntry(i, 0) }},
	}
	for _, n := range loads {
		b.Run(sizeName(n), func(b *testing.B) {
			p := newPlant(true)
			fill(b, p.configs.Store, standardEntries(n))
			p.configs.Drain()
			for _, k := range kinds {
				c := newChanges(n, k.edit)
				measure(b, k.name, func(i int) bool { return p.update(c.at(i)) })
				c.undo(p)
			}
			c := newChanges(n, kinds[0].edit)
			store := newStore()
			fill(b, store, standardEntries(n))
			measure(b, "store=endpoints", func(i int) bool { return updateOnly(store, c.at(i)) })
			benchmarkChangeLimit(b, n)
		})
	}
}

// updateOnly writes without delivering the event.
func updateOnly(store *memory.Store, c configstore.Config) bool {
	_, err := store.Update(c)
	return err == nil
}

// benchmarkChangeLimit has the limits: the replacement of the endpoints of one of
// n entries, and the comparison of two equal entries by hand.
func benchmarkChangeLimit(b *testing.B, n int) {
	b.Helper()
	limit := newLimitRegistry()
	for i := range n {
		limit.put(specOf(standardEntry(i, 0)))
	}
	c := newChanges(n, func(i int) configstore.Config { return standardEntry(i, 1) })
	measure(b, "limit=replace", func(i int) bool { return limit.put(specOf(c.at(i))) })
	d := newChanges(n, annotated)
	measure(b, "limit=compare", func(i int) bool {
		v := d.variants[i%len(d.variants)]
		return sameEntry(specOf(v[0]), specOf(v[1]))
	})
}

func specOf(c configstore.Config) *networking.ServiceEntry {
	spec, _ := c.Spec.(*networking.ServiceEntry)
	return spec
}

func otherPort(i int) configstore.Config {
	c := standardEntry(i, 0)
	specOf(c).Ports[0].Number = 81
	return c
}

func otherHost(i int) configstore.Config {
	c := standardEntry(i, 0)
	specOf(c).Hosts[0] = fmt.Sprintf("renamed-%d.example.com", i)
	return c
}

func annotated(i int) configstore.Config {
	c := standardEntry(i, 0)
	c.Annotations = map[string]string{"example.com/note": "nothing"}
	return c
}

// changes are entries, spread over n, with two states each.
type changes struct{ variants [][2]configstore.Config }

// newChanges takes as many entries as do not fit into caches.
func newChanges(n int, edit func(i int) configstore.Config) *changes {
	c := &changes{variants: make([][2]configstore.Config, min(n, 2000))}
	for j := range c.variants {
		i := j * stride % n
		c.variants[j] = [2]configstore.Config{standardEntry(i, 0), edit(i)}
	}
	return c
}

// at returns the next state in round i.
func (c *changes) at(i int) configstore.Config {
	k := len(c.variants)
	return c.variants[i%k][1-i/k%2]
}

func (c *changes) undo(p *plant) {
	for _, v := range c.variants {
		p.update(v[0])
	}
}

// sameEntry compares what the registry would have to compare of standard entries.
func sameEntry(s, t *networking.ServiceEntry) bool {
	return s.GetResolution() == t.GetResolution() && s.GetLocation() == t.GetLocation() &&
		slices.Equal(s.GetHosts(), t.GetHosts()) && slices.Equal(s.GetAddresses(), t.GetAddresses()) &&
		slices.EqualFunc(s.GetPorts(), t.GetPorts(), func(p, q *networking.ServicePort) bool {
			return p.GetNumber() == q.GetNumber() && p.GetName() == q.GetName() && p.GetProtocol() == q.GetProtocol() &&
				p.GetTargetPort() == q.GetTargetPort()
		}) &&
		slices.EqualFunc(s.GetEndpoints(), t.GetEndpoints(), func(e, f *networking.WorkloadEntry) bool {
			return e.GetAddress() == f.GetAddress() && e.GetWeight() == f.GetWeight() && e.GetLocality() == f.GetLocality() &&
				e.GetServiceAccount() == f.GetServiceAccount() && e.GetNetwork() == f.GetNetwork() &&
				maps.Equal(e.GetPorts(), f.GetPorts()) && maps.Equal(e.GetLabels(), f.GetLabels())
		})
}
