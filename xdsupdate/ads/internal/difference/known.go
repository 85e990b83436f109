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

// Known are differences to one snapshot, by the snapshots of clients. The zero value is empty.
type Known struct {
	made map[Key]*Difference
	// fromNothing are the differences for clients without resources. They remain when all clients
	// are up to date, until the memory is needed, so that clients that connect one after the other
	// share the first response.
	fromNothing map[Traits]weak.Pointer[Difference]
}

// Get returns a difference that was found before, or nil.
func (k *Known) Get(key Key) *Difference {
	if found := k.made[key]; found != nil || key.From.List.Len() > 0 {
		return found
	}
	return k.fromNothing[key.Traits].Value()
}

// Add keeps a difference for other clients.
func (k *Known) Add(key Key, made *Difference) {
	if k.made[key] == made {
		return
	}
	if k.made == nil {
		k.made = make(map[Key]*Difference)
	}
	k.made[key] = made
	if key.From.List.Len() == 0 {
		if k.fromNothing == nil {
			k.fromNothing = make(map[Traits]weak.Pointer[Difference])
		}
		k.fromNothing[key.Traits] = weak.Make(made)
	}
}

// Release releases the differences, except for clients without resources.
func (k *Known) Release() { *k = Known{fromNothing: k.fromNothing} }
