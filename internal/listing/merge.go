// SPDX-License-Identifier: Apache-2.0

package listing

import (
	"slices"
	"sort"

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

// sorted sorts all objects in place, and returns them as a list for readers.
func sorted(objects []*configstore.Config) []*configstore.Config {
	slices.SortFunc(objects, func(a, b *configstore.Config) int { return compareKey(a, KeyOf(b)) })
	return published(objects)
}
