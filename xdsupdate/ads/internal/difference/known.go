// SPDX-License-Identifier: Apache-2.0

package difference

import (
	"weak"

	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/resource"
)

// Traits are the properties of clients that make responses differ between equal snapshots.
type Traits struct {
	Delta bool
	// GRPC clients keep removed resources: see package ads.
	GRPC bool
	// Returning means that the client's resources are not known. With SotW it may have assignments
	// that were removed; with delta each name has to be answered.
	Returning bool
}

// Key finds a difference to the snapshot of a selection.
type Key struct {
	From *resource.Snapshot
	Traits
}

// Known are differences to one snapshot, by the snapshots of clients. Mostly all clients have the
// same one, so the first difference has a field of its own. The zero value is empty.
type Known struct {
	firstKey Key
	first    *Difference
	others   map[Key]*Difference
	// fromNothing are the differences for clients without resources. They remain when all clients
	// are up to date, until the memory is needed, so that clients that connect one after the other
	// share the first response.
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

// Release releases the differences, except for clients without resources.
func (k *Known) Release() { *k = Known{fromNothing: k.fromNothing} }
