// SPDX-License-Identifier: Apache-2.0

package aggregate

import (
	"slices"
	"sync"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/internal/listing"
	"github.com/pilotkit/pilotkit/internal/ptrtable"
)

// view is the merged content of one kind: for each key, the object of the first member with that
// key. Get takes no lock, and neither does a list without changes. All other methods need the
// cache's lock.
type view struct {
	kind configstore.GroupVersionKind
	// winners are the visible objects, each with its member.
	winners *ptrtable.Table[listing.Key, configstore.Config]
	// shadowed are the hidden objects by key, sorted by member.
	shadowed map[listing.Key][]version
	lists    *listing.Lists
}

// version is an object of one member.
type version struct {
	member int
	config *configstore.Config
}

// newView returns an empty view of a kind. mu is the cache's lock.
func newView(kind configstore.GroupVersionKind, mu sync.Locker) *view {
	v := &view{
		kind: kind, shadowed: map[listing.Key][]version{},
		winners: ptrtable.New(hasKey, keyOf),
	}
	v.lists = listing.New(mu, v)
	return v
}

func hasKey(c *configstore.Config, _ uint16, k listing.Key) bool {
	return c.Name == k.Name && c.Namespace == k.Namespace
}

func keyOf(c *configstore.Config, _ uint16) listing.Key { return listing.KeyOf(c) }

// set sets the state of an object in one member; a nil object was removed. It returns the resulting
// change of the merged content. ok is false if the merged content does not change.
func (v *view) set(member int, k listing.Key, c *configstore.Config) (change configstore.Change, ok bool) {
	winner, note := v.winners.Get(k)
	owner := int(note)
	switch {
	case winner == nil && c == nil:
		return change, false
	case winner == nil:
		return v.win(member, c, nil), true
	case owner < member:
		v.shadow(k, member, c)
		return change, false
	case owner > member && c == nil:
		return change, false
	case owner > member:
		v.shadow(k, owner, winner)
		return v.win(member, c, winner), !c.Equal(*winner)
	case c != nil && c.Equal(*winner):
		return change, false
	case c != nil:
		return v.win(member, c, winner), true
	}
	if fallback, ok := v.fallback(k); ok {
		return v.win(fallback.member, fallback.config, winner), !fallback.config.Equal(*winner)
	}
	v.lists.Note(k, listing.Change{Grown: -1})
	v.winners.Delete(k)
	v.lists.Drop(k.Namespace)
	return configstore.Change{Event: configstore.EventDelete, Curr: winner}, true
}

// win makes an object visible. It notifies the lists before readers can see the object, as package
// listing requires.
func (v *view) win(member int, c, old *configstore.Config) configstore.Change {
	if old == nil {
		v.lists.Note(listing.KeyOf(c), listing.Change{Grown: 1})
		v.winners.Set(listing.KeyOf(c), c, uint16(member)) //nolint:gosec // there are not so many members
		return configstore.Change{Event: configstore.EventAdd, Curr: c}
	}
	v.lists.Note(listing.KeyOf(c), listing.Change{})
	v.winners.Set(listing.KeyOf(c), c, uint16(member)) //nolint:gosec // there are not so many members
	return configstore.Change{Event: configstore.EventUpdate, Old: old, Curr: c}
}

// shadow stores an object that another member hides, or removes it if c is nil.
func (v *view) shadow(k listing.Key, member int, c *configstore.Config) {
	versions := v.shadowed[k]
	i, found := slices.BinarySearchFunc(versions, member, func(v version, member int) int { return v.member - member })
	switch {
	case found && c == nil:
		versions = slices.Delete(versions, i, i+1)
	case found:
		versions[i].config = c
	case c != nil:
		versions = slices.Insert(versions, i, version{member, c})
	}
	if len(versions) == 0 {
		delete(v.shadowed, k)
		return
	}
	v.shadowed[k] = versions
}

// fallback removes and returns the first shadowed object of a key.
func (v *view) fallback(k listing.Key) (version, bool) {
	versions := v.shadowed[k]
	if len(versions) == 0 {
		return version{}, false
	}
	first := versions[0]
	v.shadow(k, first.member, nil)
	return first, true
}

// keysOf returns the keys of all objects of a member, visible or shadowed, in no order.
func (v *view) keysOf(member int) []listing.Key {
	var keys []listing.Key
	v.winners.Each(func(c *configstore.Config, owner uint16) bool {
		if int(owner) == member {
			keys = append(keys, listing.KeyOf(c))
		}
		return true
	})
	for k, versions := range v.shadowed {
		if slices.ContainsFunc(versions, func(v version) bool { return v.member == member }) {
			keys = append(keys, k)
		}
	}
	return keys
}

// Get implements listing.Source.
func (v *view) Get(k listing.Key) *configstore.Config {
	c, _ := v.winners.Get(k)
	return c
}

// Each implements listing.Source.
func (v *view) Each(yield func(*configstore.Config) bool) {
	v.winners.Each(func(c *configstore.Config, _ uint16) bool { return yield(c) })
}

// Freeze implements listing.Source. It returns nil because the table cannot be frozen.
func (v *view) Freeze() listing.Objects { return nil }

// canonical returns an object with the kind's canonical version, because a member may use another
// one.
func (v *view) canonical(c *configstore.Config) *configstore.Config {
	if c.GroupVersionKind == v.kind {
		return c
	}
	d := *c
	d.GroupVersionKind = v.kind
	return &d
}
