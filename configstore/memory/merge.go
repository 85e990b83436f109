// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"cmp"
	"slices"
	"sort"
	"strings"

	"github.com/pilotkit/pilotkit/configstore"
)

// changed is a key with its object now, nil if it is gone.
type changed struct {
	key
	config *configstore.Config
}

// resolve returns the objects of keys, sorted and each once.
func resolve(keys []key, get func(key) *entry) []changed {
	if len(keys) > 1 {
		keys = slices.Clone(keys)
		slices.SortFunc(keys, key.compare)
		keys = slices.Compact(keys)
	}
	out := make([]changed, len(keys))
	for i, at := range keys {
		out[i].key = at
		if e := get(at); e != nil {
			out[i].config = &e.Value.Config
		}
	}
	return out
}

// merge returns a new list: items with changes, both sorted.
func merge(items []*configstore.Config, changes []changed) []*configstore.Config {
	grown := 0
	for _, c := range changes {
		if c.config != nil {
			grown++
		}
	}
	out := make([]*configstore.Config, 0, len(items)+grown)
	for _, c := range changes {
		n := gallop(items, c.key)
		out = append(out, items[:n]...)
		items = items[n:]
		if len(items) > 0 && compareKey(items[0], c.key) == 0 {
			items = items[1:]
		}
		if c.config != nil {
			out = append(out, c.config)
		}
	}
	return slices.Clip(append(out, items...)) // no caller's append may write to it
}

// gallop returns the position of the first item that is not before a key, in a
// time that grows with the logarithm of that position.
func gallop(items []*configstore.Config, at key) int {
	high := 1
	for high <= len(items) && compareKey(items[high-1], at) < 0 {
		high *= 2
	}
	low := high / 2
	high = min(high-1, len(items))
	return low + sort.Search(high-low, func(i int) bool { return compareKey(items[low+i], at) >= 0 })
}

// inNamespace returns the part of a sorted list that is in a namespace.
func inNamespace(items []*configstore.Config, namespace string) []*configstore.Config {
	low := sort.Search(len(items), func(i int) bool { return items[i].Namespace >= namespace })
	items = items[low:]
	high := sort.Search(len(items), func(i int) bool { return items[i].Namespace > namespace })
	if high == 0 {
		return nil
	}
	return items[:high:high]
}

// sorted returns all objects of a map, sorted. It groups by namespace first: that
// leaves short lists to be sorted, by name alone.
func sorted(m objects) []*configstore.Config {
	groups := map[string][]*configstore.Config{}
	m.Entries(func(e *entry) bool {
		groups[e.Key.namespace] = append(groups[e.Key.namespace], &e.Value.Config)
		return true
	})
	namespaces := make([]string, 0, len(groups))
	for ns, group := range groups {
		namespaces = append(namespaces, ns)
		slices.SortFunc(group, func(a, b *configstore.Config) int { return strings.Compare(a.Name, b.Name) })
	}
	slices.Sort(namespaces)
	out := make([]*configstore.Config, 0, m.Len())
	for _, ns := range namespaces {
		out = append(out, groups[ns]...)
	}
	return out
}

func compareKey(c *configstore.Config, at key) int {
	return cmp.Or(strings.Compare(c.Namespace, at.namespace), strings.Compare(c.Name, at.name))
}
