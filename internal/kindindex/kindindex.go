// SPDX-License-Identifier: Apache-2.0

// Package kindindex maps kinds to indexes, so that data per kind can be kept in a slice. Every read
// of a store begins with such a lookup.
package kindindex

// Name is a kind in one of its versions: a configstore.GroupVersionKind.
type Name struct{ Group, Version, Kind string }

// Index finds positions by name. The zero value is empty. It may be read from any
// goroutine while nobody adds to it.
//
// As there are few kinds, a search mostly compares one name, where a map would hash
// three strings: a Get of a store takes 40 % longer then (go test -bench 'Get$'
// ./configstore/memory). Where there are many, lists would be long, and the map is used.
type Index struct {
	slots [128]*entry
	all   map[Name]int
}

// entry is one name in the list of a slot.
type entry struct {
	name  Name
	index int
	next  *entry
}

// Add adds a name and its other versions. The first position of a name counts.
func (x *Index) Add(index int, name Name, aliases ...string) {
	x.add(index, name)
	for _, name.Version = range aliases {
		x.add(index, name)
	}
}

func (x *Index) add(index int, name Name) {
	if _, ok := x.Find(&name); ok {
		return
	}
	if x.all == nil {
		x.all = map[Name]int{}
	}
	x.all[name] = index
	slot := &x.slots[slotOf(&name)]
	*slot = &entry{name, index, *slot}
}

// Find returns the position of a name. The name is a pointer because it is long and
// most searches are on the way of a read.
func (x *Index) Find(name *Name) (index int, ok bool) {
	if len(x.all) > len(x.slots) {
		index, ok = x.all[*name]
		return index, ok
	}
	for e := x.slots[slotOf(name)]; e != nil; e = e.next {
		if e.name == *name {
			return e.index, true
		}
	}
	return 0, false
}

// slotOf hashes the lengths and two letters, which distinguish the kinds of a mesh; a
// collision costs one more comparison.
func slotOf(name *Name) uint {
	n := uint(len(name.Kind))
	if n == 0 {
		return 0
	}
	return (n<<2 + uint(len(name.Version)) + uint(name.Kind[0])*5 + uint(name.Kind[n-1])*3) % uint(len(Index{}.slots))
}
