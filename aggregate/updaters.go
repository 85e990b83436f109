// SPDX-License-Identifier: Apache-2.0

package aggregate

import (
	"sync"

	"github.com/pilotkit/pilotkit/xdsupdate"
)

// updaters are the updaters of the registries. Each registry writes to them through a ShardWriter.
type updaters struct {
	mu sync.Mutex
	// all are the updaters of the registries. readers are the updaters among these that read the services without
	// roots. Both are nil if there are none.
	all, readers xdsupdate.XDSUpdater
	// writers is nil until the first registry is made. After that, updaters cannot be attached.
	writers *xdsupdate.Writers
}

// attach adds an updater that reads the services.
func (u *updaters) attach(updater xdsupdate.XDSUpdater) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.writers != nil {
		panic("aggregate: an updater is attached after the first registry, which does not write to it: " +
			"create the ads.Server before the registries, or set Options.Updater")
	}
	u.all = xdsupdate.Multi(u.all, updater)
	if xdsupdate.NewInbox(updater).Follows() {
		u.readers = xdsupdate.Multi(u.readers, updater)
	}
}

// missing reports whether the first registry is about to be made and there is no updater, not even
// xdsupdate.Discard.
func (u *updaters) missing() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.all == nil && u.writers == nil
}

// deliver calls updaters of the host for committed updates, and for a request that a commit has given to the other
// updaters. A nil request is none.
func (u *updaters) deliver(req *xdsupdate.PushRequest) {
	u.made().Deliver()
	u.mu.Lock()
	readers := u.readers
	u.mu.Unlock()
	if readers != nil && req != nil {
		readers.ConfigUpdate(req)
	}
}

// made returns the writers of the registries.
func (u *updaters) made() *xdsupdate.Writers {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.writers == nil {
		u.writers = xdsupdate.NewWriters(u.all)
	}
	return u.writers
}
