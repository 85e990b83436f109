// SPDX-License-Identifier: Apache-2.0

package memory

import "github.com/pilotkit/pilotkit/configstore"

// kinds are the kinds of a store. They are fixed.
type kinds struct {
	all []*kind
	// table finds kinds by name, aliases included. Every read begins here, and a
	// map of three strings would cost as much as the rest of it.
	table [kindSlots]*kindName
}

// kindName is one name of a kind.
type kindName struct {
	gvk  configstore.GroupVersionKind
	kind *kind
	// next is another name of the same slot.
	next *kindName
}

const kindSlots = 128

func newKinds(schemas configstore.Schemas) kinds {
	var ks kinds
	for i, schema := range schemas.All() {
		k := newKind(schema, i)
		ks.all = append(ks.all, k)
		ks.name(schema.GroupVersionKind, k)
		for _, version := range schema.Aliases {
			alias := schema.GroupVersionKind
			alias.Version = version
			ks.name(alias, k)
		}
	}
	return ks
}

// name names a kind, unless the name is taken: in a union an alias may be the
// version of a schema that comes before, which it then means, as in Schemas.Find.
func (ks *kinds) name(gvk configstore.GroupVersionKind, k *kind) {
	if ks.find(&gvk) != nil {
		return
	}
	slot := &ks.table[kindSlot(&gvk)]
	*slot = &kindName{gvk, k, *slot}
}

// find returns a kind, named by any version, or nil.
func (ks *kinds) find(gvk *configstore.GroupVersionKind) *kind {
	n := ks.table[kindSlot(gvk)]
	for n != nil && n.gvk != *gvk {
		n = n.next
	}
	if n == nil {
		return nil
	}
	return n.kind
}

// kindSlot hashes the lengths and two letters, which tell the kinds of a mesh
// apart; a collision costs one more comparison.
func kindSlot(gvk *configstore.GroupVersionKind) int {
	n := len(gvk.Kind)
	if n == 0 {
		return 0
	}
	return (n<<2 + len(gvk.Version) + int(gvk.Kind[0])*5 + int(gvk.Kind[n-1])*3) % kindSlots
}
