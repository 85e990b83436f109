// SPDX-License-Identifier: Apache-2.0

package aggregate

import "github.com/pilotkit/pilotkit/configstore"

// views are the kinds of a cache. They are fixed.
type views struct {
	all []*view
	// table finds kinds by any of their names: every read begins here, and a map
	// with keys of three strings would cost as much as the rest of it.
	table [viewSlots]*viewName
}

type viewName struct {
	kind configstore.GroupVersionKind
	view *view
	next *viewName
}

const viewSlots = 128

func newViews(schemas configstore.Schemas) *views {
	vs := &views{}
	for _, schema := range schemas.All() {
		v := newView(schema.GroupVersionKind)
		vs.all = append(vs.all, v)
		kind := schema.GroupVersionKind
		for _, version := range append([]string{kind.Version}, schema.Aliases...) {
			kind.Version = version
			if vs.find(&kind) == nil { // an alias may be another schema's version
				slot := &vs.table[viewSlot(&kind)]
				*slot = &viewName{kind, v, *slot}
			}
		}
	}
	return vs
}

// find returns the view of a kind, named by any version, or nil.
func (vs *views) find(kind *configstore.GroupVersionKind) *view {
	n := vs.table[viewSlot(kind)]
	for n != nil && n.kind != *kind {
		n = n.next
	}
	if n == nil {
		return nil
	}
	return n.view
}

func viewSlot(kind *configstore.GroupVersionKind) int {
	n := len(kind.Kind)
	if n == 0 {
		return 0
	}
	return (n<<2 + len(kind.Version) + int(kind.Kind[0])*5 + int(kind.Kind[n-1])*3) % viewSlots
}

// canonical returns an object under the kind's canonical version: a member may
// have another one.
func (v *view) canonical(c *configstore.Config) *configstore.Config {
	if c.GroupVersionKind == v.kind {
		return c
	}
	d := *c
	d.GroupVersionKind = v.kind
	return &d
}
