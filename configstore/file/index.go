// SPDX-License-Identifier: Apache-2.0

package file

import (
	"cmp"
	"slices"
	"strings"

	"github.com/pilotkit/pilotkit/configstore"
)

// index holds the definitions of all files by object.
type index struct {
	definitions map[configstore.ConfigKey][]*definition
	// duplicates are the objects with more than one definition.
	duplicates map[configstore.ConfigKey]struct{}
}

func newIndex() index {
	return index{
		definitions: map[configstore.ConfigKey][]*definition{},
		duplicates:  map[configstore.ConfigKey]struct{}{},
	}
}

// compareDefinitions orders the definitions of one object: confirmed definitions before unconfirmed
// ones, then by path and by place in the file.
func compareDefinitions(a, b *definition) int {
	if a.unconfirmed != b.unconfirmed {
		if a.unconfirmed {
			return 1
		}
		return -1
	}
	return cmp.Or(
		strings.Compare(a.section.file.name, b.section.file.name),
		cmp.Compare(a.section.ordinal, b.section.ordinal),
		cmp.Compare(a.sequence, b.sequence),
	)
}

// change removes the definitions in gone and adds those in added; a definition may be in both. It
// adds the keys of all of them to dirty. Each key is updated once, regardless of the number of its
// definitions.
func (x index) change(gone, added []*definition, dirty map[configstore.ConfigKey]struct{}) {
	more := map[configstore.ConfigKey][]*definition{}
	for _, c := range gone {
		c.removed = true
		more[c.key] = nil
	}
	for _, c := range added {
		more[c.key] = append(more[c.key], c)
	}
	for key, definitions := range more {
		dirty[key] = struct{}{}
		x.set(key, append(slices.DeleteFunc(x.definitions[key], func(c *definition) bool { return c.removed }), definitions...))
	}
	for _, c := range gone {
		c.removed = false
	}
}

// set replaces the definitions of an object.
func (x index) set(key configstore.ConfigKey, definitions []*definition) {
	if len(definitions) > 0 {
		x.definitions[key] = definitions
	} else {
		delete(x.definitions, key)
	}
	if len(definitions) > 1 {
		slices.SortFunc(definitions, compareDefinitions)
		x.duplicates[key] = struct{}{}
	} else {
		delete(x.duplicates, key)
	}
}

// effective returns the definition that determines the object: the first one with a state, or else
// a placeholder, or nil if there is neither.
func (x index) effective(key configstore.ConfigKey) *definition {
	var placeholder *definition
	for _, c := range x.definitions[key] {
		switch {
		case c.config == nil:
		case !configstore.IsPlaceholder(c.config):
			return c
		case placeholder == nil:
			placeholder = c
		}
	}
	return placeholder
}
