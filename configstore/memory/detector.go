// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"fmt"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/internal/guard"
	"github.com/pilotkit/pilotkit/internal/listing"
)

// verify panics if an object is not as it was stored. It does nothing without
// Options.DetectMutations.
func (o *object) verify() {
	if o.original != nil { // small enough for Get to take it in
		o.compare()
	}
}

func (o *object) compare() {
	if !o.Equal(*o.original) {
		panic(guard.Defect(fmt.Sprintf(
			"memory: %s was changed after it was stored; stored objects are read-only: change a Clone", o.original.Key().Object())))
	}
}

// verifyList verifies those objects of a list that are the stored ones now.
func (s *Store) verifyList(k *kind, items []*configstore.Config) {
	if !s.opts.DetectMutations {
		return
	}
	for _, c := range items {
		k.verify(c)
	}
}

func (k *kind) verify(c *configstore.Config) {
	if e := k.objects.Entry(listing.KeyOf(c)); e != nil && &e.Value.Config == c {
		e.Value.verify()
	}
}
