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

// compareDefinitions orders the definitions of one object: what a document says before
// what none says any more, then by path and by place in the file.
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

// change removes definitions and adds others, some of which may be the same. The keys
// of all of them are added to dirty. Each key is touched once, however many
// definitions there are of it.
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

// effective returns the definition that says what the object is: the first that has
// a state of it, or else a placeholder; nil if none has.
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
