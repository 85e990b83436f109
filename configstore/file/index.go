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
// what nobody says any more, then by path and by place in the file.
func compareClaims(a, b *claim) int {
	if a.vague != b.vague {
		if a.vague {
			return 1
		}
		return -1
	}
	return cmp.Or(strings.Compare(a.content.name, b.content.name), cmp.Compare(a.sequence, b.sequence))
}

func (x index) add(c *claim) {
	claims := x.claims[c.key]
	at, _ := slices.BinarySearchFunc(claims, c, compareClaims)
	x.set(c.key, slices.Insert(claims, at, c))
}

func (x index) remove(c *claim) {
	claims := x.claims[c.key]
	if i := slices.Index(claims, c); i >= 0 {
		x.set(c.key, slices.Delete(claims, i, i+1))
	}
}

func (x index) set(key configstore.ConfigKey, claims []*claim) {
	if len(claims) > 0 {
		x.claims[key] = claims
	} else {
		delete(x.claims, key)
	}
	if len(claims) > 1 {
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

// duplicates returns the errors of the documents that lose against another one.
func (x index) duplicates() []*Error {
	var out []*Error
	for key := range x.contested {
		winner := x.winner(key)
		for _, c := range x.claims[key] {
			if winner == nil || c == winner || c.stale {
				continue
			}
			e := c.place
			e.Err = &duplicateError{first: winner.place}
			out = append(out, &e)
		}
	}
	return out
}
