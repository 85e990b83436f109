// SPDX-License-Identifier: Apache-2.0

package aggregate

import (
	"slices"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/internal/pmap"
)

// view is the merged content of one kind: of each key the object of the first
// member that has one. Reads take no lock but to make a list; all else needs the
// cache's lock.
type view struct {
	kind    configstore.GroupVersionKind
	winners *table
	// shadowed are the objects that lost, by key and member, in the order of the
	// members.
	shadowed map[key][]version

	all list
	// namespaces are the lists of the namespaces that have objects.
	namespaces pmap.Live[string, *list]
}

// version is an object of one member.
type version struct {
	member int
	config *configstore.Config
}

func newView(kind configstore.GroupVersionKind) *view {
	return &view{kind: kind, winners: newTable(), shadowed: map[key][]version{}}
}

// set takes the state of an object in one member; nil: it has none. It returns
// what that means for the merged content; ok is false if it means nothing.
func (v *view) set(member int, k key, c *configstore.Config) (change configstore.Change, ok bool) {
	winner, owner := v.winners.owned(k)
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
	v.winners.remove(k)
	v.note(k, -1)
	return configstore.Change{Event: configstore.EventDelete, Curr: winner}, true
}

// win makes an object the one that is seen.
func (v *view) win(member int, c, old *configstore.Config) configstore.Change {
	v.winners.set(c, member)
	if old == nil {
		v.note(keyOf(c), 1)
		return configstore.Change{Event: configstore.EventAdd, Curr: c}
	}
	v.note(keyOf(c), 0)
	return configstore.Change{Event: configstore.EventUpdate, Old: old, Curr: c}
}

// shadow keeps, or for nil forgets, an object that another member hides.
func (v *view) shadow(k key, member int, c *configstore.Config) {
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

// fallback takes the first shadowed object of a key.
func (v *view) fallback(k key) (version, bool) {
	versions := v.shadowed[k]
	if len(versions) == 0 {
		return version{}, false
	}
	first := versions[0]
	v.shadow(k, first.member, nil)
	return first, true
}

// of returns the object that a member has, seen or shadowed, or nil.
func (v *view) of(member int, k key) *configstore.Config {
	if winner, owner := v.winners.owned(k); winner != nil && owner == member {
		return winner
	}
	for _, version := range v.shadowed[k] {
		if version.member == member {
			return version.config
		}
	}
	return nil
}

// keysOf returns all that a member has, seen or shadowed.
func (v *view) keysOf(member int) []key {
	var keys []key
	v.winners.each(func(c *configstore.Config, owner int) {
		if owner == member {
			keys = append(keys, keyOf(c))
		}
	})
	for k, versions := range v.shadowed {
		if slices.ContainsFunc(versions, func(v version) bool { return v.member == member }) {
			keys = append(keys, k)
		}
	}
	return keys
}

// note tells the lists of a change, by which the number of objects has grown.
func (v *view) note(k key, grown int) {
	v.all.note(k)
	l, _ := v.namespaces.Get(k.namespace)
	if l == nil {
		l = &list{lost: true} // nothing is noted until somebody asks for it
		v.namespaces.Set(k.namespace, l)
	}
	l.note(k)
	if l.objects += grown; l.objects == 0 {
		v.namespaces.Delete(k.namespace)
	}
}

// fresh returns a list if that takes no work.
func (v *view) fresh(namespace string) ([]*configstore.Config, bool) {
	l := v.listOf(namespace)
	if l == nil {
		return nil, true
	}
	if list := l.fresh.Load(); list != nil {
		return *list, true
	}
	return nil, false
}

// listOf returns the list of a namespace, or of all, or nil if a namespace has no
// objects.
func (v *view) listOf(namespace string) *list {
	if namespace == configstore.NamespaceAll {
		return &v.all
	}
	l, _ := v.namespaces.Get(namespace)
	return l
}

// list returns the sorted objects of a namespace, or of all.
func (v *view) list(namespace string) []*configstore.Config {
	l := v.listOf(namespace)
	switch l {
	case nil:
		return nil
	case &v.all:
		return l.refresh(v.winners.get, v.sorted)
	}
	return l.refresh(v.winners.get, func() []*configstore.Config {
		return inNamespace(v.list(configstore.NamespaceAll), namespace)
	})
}

func (v *view) sorted() []*configstore.Config {
	out := make([]*configstore.Config, 0, v.winners.live)
	v.winners.each(func(c *configstore.Config, _ int) { out = append(out, c) })
	slices.SortFunc(out, func(a, b *configstore.Config) int { return keyOf(a).compare(keyOf(b)) })
	return out
}

// inNamespace returns the part of a sorted list that is in a namespace.
func inNamespace(items []*configstore.Config, namespace string) []*configstore.Config {
	from, _ := slices.BinarySearchFunc(items, key{namespace: namespace}, compareKey)
	// The first key after all of a namespace.
	to, _ := slices.BinarySearchFunc(items, key{namespace: namespace + "\x00"}, compareKey)
	return items[from:to:to]
}
