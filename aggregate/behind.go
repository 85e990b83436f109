// SPDX-License-Identifier: Apache-2.0

package aggregate

import (
	"maps"
	"slices"

	"github.com/pilotkit/pilotkit/configstore"
)

// As long as the views are behind, because a member's history does not hold all
// that has changed, reads ask the members.

// find is Get.
func (c *Cache) find(v *view, k key) *configstore.Config {
	for _, m := range c.members {
		if config := c.objectOf(m, v, k); config != nil {
			return v.canonical(config)
		}
	}
	return nil
}

// gather is List.
func (c *Cache) gather(v *view, namespace string) []*configstore.Config {
	found := map[key]*configstore.Config{}
	for _, m := range c.members {
		for _, config := range c.objectsOf(m, v, namespace) {
			if k := keyOf(config); found[k] == nil {
				found[k] = v.canonical(config)
			}
		}
	}
	return slices.SortedFunc(maps.Values(found), func(a, b *configstore.Config) int { return keyOf(a).compare(keyOf(b)) })
}

// objectOf returns the object of a member, or nil. Of one that tells of its
// changes by events only, it is what the views have: reads must not go back when
// the views are up to date again.
func (c *Cache) objectOf(m *member, v *view, k key) *configstore.Config {
	if m.numbered == nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		return v.of(m.index, k)
	}
	for kind := range m.kindsOf(v) {
		if config := m.cache.Get(kind, k.name, k.namespace); config != nil {
			return config
		}
	}
	return nil
}

// objectsOf is objectOf for all objects of a namespace, or of all.
func (c *Cache) objectsOf(m *member, v *view, namespace string) []*configstore.Config {
	var out []*configstore.Config
	if m.numbered == nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, k := range v.keysOf(m.index) {
			if namespace == configstore.NamespaceAll || k.namespace == namespace {
				out = append(out, v.of(m.index, k))
			}
		}
		return out
	}
	for kind := range m.kindsOf(v) {
		out = append(out, m.cache.List(kind, namespace)...)
	}
	return out
}
