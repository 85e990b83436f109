// SPDX-License-Identifier: Apache-2.0

package listing

import (
	"slices"
	"sort"
	"strings"

	"github.com/pilotkit/pilotkit/configstore"
)

// changed is a key with its object, nil if that does not exist.
type changed struct {
	Key
	config *configstore.Config
}

// resolve returns the objects of keys, sorted and each once.
func resolve(keys []Key, objects Objects) []changed {
	if len(keys) > 1 {
		keys = slices.Clone(keys)
		slices.SortFunc(keys, Key.Compare)
		keys = slices.Compact(keys)
	}
	out := make([]changed, len(keys))
	for i, k := range keys {
		out[i] = changed{k, objects.Get(k)}
	}
	return out
}

// merge returns a new list: items with changes, both sorted. It is nil if it is
// empty.
func merge(items []*configstore.Config, changes []changed) []*configstore.Config {
	grown := 0
	for _, c := range changes {
		if c.config != nil {
			grown++
		}
	}
	out := make([]*configstore.Config, 0, len(items)+grown)
	for _, c := range changes {
		n, found := slices.BinarySearchFunc(items, c.Key, compareKey)
		out = append(out, items[:n]...)
		if found {
			n++
		}
		items = items[n:]
		if c.config != nil {
			out = append(out, c.config)
		}
	}
	return published(append(out, items...))
}

// published returns a list as it is handed out: nil if it is empty, and without
// room that a caller's append could write to.
func published(items []*configstore.Config) []*configstore.Config {
	if len(items) == 0 {
		return nil
	}
	return slices.Clip(items)
}

// InNamespace returns the part of a sorted list that is in a namespace, without
// copying it; nil if there is none.
func InNamespace(items []*configstore.Config, namespace string) []*configstore.Config {
	low := sort.Search(len(items), func(i int) bool { return items[i].Namespace >= namespace })
	items = items[low:]
	high := sort.Search(len(items), func(i int) bool { return items[i].Namespace > namespace })
	return published(items[:high:high])
}

// collect returns all objects.
func collect(objects Objects) []*configstore.Config {
	var out []*configstore.Config
	objects.Each(func(c *configstore.Config) bool {
		out = append(out, c)
		return true
	})
	return out
}

// sorted sorts a list. It groups by namespace first: that leaves short lists to be
// sorted, by name alone.
func sorted(items []*configstore.Config) []*configstore.Config {
	groups := map[string][]*configstore.Config{}
	for _, c := range items {
		groups[c.Namespace] = append(groups[c.Namespace], c)
	}
	namespaces := make([]string, 0, len(groups))
	for ns, group := range groups {
		namespaces = append(namespaces, ns)
		slices.SortFunc(group, func(a, b *configstore.Config) int { return strings.Compare(a.Name, b.Name) })
	}
	slices.Sort(namespaces)
	out := items[:0]
	for _, ns := range namespaces {
		out = append(out, groups[ns]...)
	}
	return published(out)
}
