// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"go.uber.org/atomic"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/internal/listing"
)

// view is one kind at the time of a snapshot. It is immutable, but that its list
// is made when it is read first.
type view struct {
	objects objects
	all     listing.Capture
	list    atomic.Pointer[[]*configstore.Config]
}

// freeze returns the kind as it is. The store's lock must be held.
func (k *kind) freeze() *view {
	if k.frozen == nil {
		k.frozen = &view{objects: k.snapshot(), all: k.lists.Capture()}
	}
	return k.frozen
}

// items returns the sorted list of all namespaces. Two goroutines may make it at
// once, with the same result.
func (v *view) items() []*configstore.Config {
	if list := v.list.Load(); list != nil {
		return *list
	}
	list := v.all.List(v.objects)
	v.list.Store(&list)
	return list
}
