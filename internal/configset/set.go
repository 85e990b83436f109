// SPDX-License-Identifier: Apache-2.0

// Package configset is a persistent set of configs, such as those that a converter makes of other objects.
package configset

import (
	"slices"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/internal/pmap"
)

// Set contains the configs that a converter has made. It never changes, and the zero value is
// empty. Its configs are shared and read-only.
type Set struct {
	configs pmap.Map[configstore.ConfigKey, *configstore.Config]
}

// Configs returns all configs of a kind, sorted by namespace and name. Each call sorts them.
func (s Set) Configs(kind configstore.GroupVersionKind) []*configstore.Config {
	out := []*configstore.Config{}
	for key, config := range s.configs.All() {
		if key.Kind == kind {
			out = append(out, config)
		}
	}
	slices.SortFunc(out, func(a, b *configstore.Config) int { return a.Key().Compare(b.Key()) })
	return out
}

// Get returns a config, or nil.
func (s Set) Get(kind configstore.GroupVersionKind, name, namespace string) *configstore.Config {
	config, _ := s.configs.Get(configstore.ConfigKey{Kind: kind, Name: name, Namespace: namespace})
	return config
}

// Adds returns all configs as changes, sorted.
func (s Set) Adds() []configstore.Change {
	out := make([]configstore.Change, 0, s.configs.Len())
	for _, config := range s.configs.All() {
		out = append(out, configstore.Change{Event: configstore.EventAdd, Curr: config})
	}
	return sorted(out)
}

// Edit is a Set in the making. The zero value begins with the empty Set.
type Edit struct {
	set    Set
	before map[configstore.ConfigKey]*configstore.Config // the configs of the last Settle that were put since; nil for none
}

// Set returns the present Set.
func (e *Edit) Set() Set { return e.set }

// Put sets the config of a key; nil removes it.
func (e *Edit) Put(key configstore.ConfigKey, next *configstore.Config) {
	old, _ := e.set.configs.Get(key)
	if same(old, next) {
		return
	}
	if e.before == nil {
		e.before = map[configstore.ConfigKey]*configstore.Config{}
	}
	if _, touched := e.before[key]; !touched {
		e.before[key] = old
	}
	if next == nil {
		e.set.configs = e.set.configs.Delete(key)
	} else {
		e.set.configs = e.set.configs.Set(key, next)
	}
}

// Settle returns the changes since the last call, one for each changed config, sorted by kind,
// namespace and name.
func (e *Edit) Settle() []configstore.Change {
	var out []configstore.Change
	for key, old := range e.before {
		next, _ := e.set.configs.Get(key)
		switch {
		case same(old, next):
		case old == nil:
			out = append(out, configstore.Change{Event: configstore.EventAdd, Curr: next})
		case next == nil:
			out = append(out, configstore.Change{Event: configstore.EventDelete, Curr: old})
		default:
			out = append(out, configstore.Change{Event: configstore.EventUpdate, Old: old, Curr: next})
		}
	}
	e.before = nil
	return sorted(out)
}

func sorted(changes []configstore.Change) []configstore.Change {
	slices.SortFunc(changes, func(a, b configstore.Change) int { return a.Curr.Key().Compare(b.Curr.Key()) })
	return changes
}

func same(a, b *configstore.Config) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Equal(*b)
}
