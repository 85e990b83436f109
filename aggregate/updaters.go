// SPDX-License-Identifier: Apache-2.0

package aggregate

import (
	"sync"

	"github.com/pilotkit/pilotkit/xdsupdate"
)

// updaters is what the registries write to, each as an owner.
type updaters struct {
	mu sync.Mutex
	// all is what registries write to, readers those of it that read the services.
	// Both are nil if there are none.
	all, readers xdsupdate.XDSUpdater
	// owners is nil until a registry is made; then nothing is attached any more.
	owners *xdsupdate.Owners
}

// attach adds an updater that reads the services.
func (u *updaters) attach(updater xdsupdate.XDSUpdater) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.owners != nil {
		panic("aggregate: an updater is attached after a registry was made without it")
	}
	u.all, u.readers = xdsupdate.Multi(u.all, updater), xdsupdate.Multi(u.readers, updater)
}

// own returns the updater of a registry, or of what acts as one.
func (u *updaters) own() xdsupdate.Owner {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.owners == nil {
		u.owners = xdsupdate.NewOwners(u.all)
	}
	return u.owners.Own()
}

// attached returns the readers; nil if there are none.
func (u *updaters) attached() xdsupdate.XDSUpdater {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.readers
}
