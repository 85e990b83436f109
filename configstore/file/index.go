// SPDX-License-Identifier: Apache-2.0

package file

import (
	"cmp"
	"slices"
	"strings"

	"github.com/pilotkit/pilotkit/configstore"
)

// index holds the claims of all files by object.
type index struct {
	claims map[configstore.ConfigKey][]*claim
	// contested are the objects with more than one claim.
	contested map[configstore.ConfigKey]struct{}
}

func newIndex() index {
	return index{
		claims:    map[configstore.ConfigKey][]*claim{},
		contested: map[configstore.ConfigKey]struct{}{},
	}
}

// compareClaims orders the claims of one object: what a document says before
// what none says any more, then by path and by place in the file.
func compareClaims(a, b *claim) int {
	if a.vague != b.vague {
		if a.vague {
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

// change removes claims and adds others, some of which may be the same. The keys
// of all of them are added to dirty. Each key is touched once, however many
// claims there are of it.
func (x index) change(gone, added []*claim, dirty map[configstore.ConfigKey]struct{}) {
	more := map[configstore.ConfigKey][]*claim{}
	for _, c := range gone {
		c.removed = true
		more[c.key] = nil
	}
	for _, c := range added {
		more[c.key] = append(more[c.key], c)
	}
	for key, claims := range more {
		dirty[key] = struct{}{}
		x.set(key, append(slices.DeleteFunc(x.claims[key], func(c *claim) bool { return c.removed }), claims...))
	}
	for _, c := range gone {
		c.removed = false
	}
}

func (x index) set(key configstore.ConfigKey, claims []*claim) {
	if len(claims) > 0 {
		x.claims[key] = claims
	} else {
		delete(x.claims, key)
	}
	if len(claims) > 1 {
		slices.SortFunc(claims, compareClaims)
		x.contested[key] = struct{}{}
	} else {
		delete(x.contested, key)
	}
}

// winner returns the claim that says what the object is; nil if no claim knows.
func (x index) winner(key configstore.ConfigKey) *claim {
	for _, c := range x.claims[key] {
		if c.config != nil {
			return c
		}
	}
	return nil
}
