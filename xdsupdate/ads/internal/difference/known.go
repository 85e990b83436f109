// SPDX-License-Identifier: Apache-2.0

package difference

import (
	"weak"

	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/resource"
)

// Traits is what makes clients that have the same differ in what they are sent.
type Traits struct {
	Delta bool
	// GRPC clients keep what has gone: see package ads.
	GRPC bool
	// Returning: nothing is known of what the client has. With SotW there may be
	// assignments that have gone; with delta each name has to be answered.
	Returning bool
}

// Key finds a difference to the snapshot of a selection.
type Key struct {
	From *resource.Snapshot
	Traits
}

// Known are differences to one snapshot, by what clients have. Mostly all clients have the same,
// so that the first one has its own place. The zero value has none.
type Known struct {
	firstKey Key
	first    *Difference
	others   map[Key]*Difference
	// fromNothing are those for clients that have nothing, even when all have been brought up to
	// date: as long as the memory is not needed, clients that come one after the other share
	// the first answer.
	fromNothing map[Traits]weak.Pointer[Difference]
}

// Get returns a difference that was found before, or nil.
func (k *Known) Get(key Key) *Difference {
	if k.first != nil && k.firstKey == key {
		return k.first
	}
	if found := k.others[key]; found != nil || key.From.List.Len() > 0 {
		return found
	}
	return k.fromNothing[key.Traits].Value()
}

// Add keeps a difference for other clients.
func (k *Known) Add(key Key, made *Difference) {
	switch {
	case k.first == nil:
		k.firstKey, k.first = key, made
	case k.firstKey == key && k.first == made || k.others[key] == made:
		return
	default:
		if k.others == nil {
			k.others = make(map[Key]*Difference)
		}
		k.others[key] = made
	}
	if key.From.List.Len() == 0 {
		if k.fromNothing == nil {
			k.fromNothing = make(map[Traits]weak.Pointer[Difference])
		}
		k.fromNothing[key.Traits] = weak.Make(made)
	}
}

// Release forgets what clients that have nothing do not need.
func (k *Known) Release() { *k = Known{fromNothing: k.fromNothing} }
