// SPDX-License-Identifier: Apache-2.0

package xdsupdate

import (
	"cmp"
	"slices"
	"sync"

	"github.com/pilotkit/pilotkit/registry"
)

// fenced makes a ShardClaimer of an updater that is none. A call that is in progress
// when a shard is claimed is not awaited; an updater that has to exclude it is a
// ShardClaimer itself.
type fenced struct {
	XDSUpdater

	mu sync.Mutex
	// last has the last claim of each shard.
	last map[ShardKey]*fence
}

// Claim ends the last claim of the shard.
func (f *fenced) Claim(shard ShardKey) ShardUpdater {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.last == nil {
		f.last = map[ShardKey]*fence{}
	}
	next := &fence{XDSUpdater: f.XDSUpdater, shard: shard, written: map[serviceName]struct{}{}, left: map[serviceName]struct{}{}}
	if former := f.last[shard]; former != nil {
		next.left = former.end()
	}
	f.last[shard] = next
	return next
}

// fence is the claim of a shard of a fenced updater.
type fence struct {
	XDSUpdater
	shard ShardKey

	mu     sync.Mutex
	closed bool
	// written are the services that have endpoints by this claim, and left those
	// that have them by claims before, and have not been written to since.
	written, left map[serviceName]struct{}
}

var _ ShardUpdater = (*fence)(nil)

// open notes that a service is written to, or gone, and reports whether it may be.
func (f *fence) open(shard ShardKey, name serviceName, gone bool) bool {
	if shard != f.shard {
		return true
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return false
	}
	delete(f.left, name)
	if gone {
		delete(f.written, name)
	} else {
		f.written[name] = struct{}{}
	}
	return true
}

// end closes the claim and returns the services that have endpoints.
func (f *fence) end() map[serviceName]struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	for name := range f.written {
		f.left[name] = struct{}{}
	}
	clear(f.written)
	return f.left
}

// Close ends the claim.
func (f *fence) Close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
}

// Prune empties the services that predecessors have written to and the holder has
// not.
func (f *fence) Prune() {
	f.mu.Lock()
	var names []serviceName
	if !f.closed {
		for name := range f.left {
			names = append(names, name)
		}
		clear(f.left)
	}
	f.mu.Unlock()
	slices.SortFunc(names, func(a, b serviceName) int {
		return cmp.Or(cmp.Compare(a.hostname, b.hostname), cmp.Compare(a.namespace, b.namespace))
	})
	for _, name := range names {
		f.XDSUpdater.EDSUpdate(f.shard, name.hostname, name.namespace, nil)
	}
}

// EDSUpdate passes while the claim lasts.
func (f *fence) EDSUpdate(shard ShardKey, hostname registry.Hostname, namespace string, endpoints []*registry.Endpoint) {
	if f.open(shard, serviceName{hostname, namespace}, false) {
		f.XDSUpdater.EDSUpdate(shard, hostname, namespace, endpoints)
	}
}

// EDSDeltaUpdate passes while the claim lasts. It is called only if the updater
// takes deltas.
func (f *fence) EDSDeltaUpdate(shard ShardKey, hostname registry.Hostname, namespace string, changes []EndpointChange) {
	if deltas, ok := As[EndpointDeltaUpdater](f.XDSUpdater); ok && f.open(shard, serviceName{hostname, namespace}, false) {
		deltas.EDSDeltaUpdate(shard, hostname, namespace, changes)
	}
}

// EDSCacheUpdate passes while the claim lasts.
func (f *fence) EDSCacheUpdate(shard ShardKey, hostname registry.Hostname, namespace string, endpoints []*registry.Endpoint) {
	if f.open(shard, serviceName{hostname, namespace}, false) {
		f.XDSUpdater.EDSCacheUpdate(shard, hostname, namespace, endpoints)
	}
}

// SvcUpdate passes while the claim lasts.
func (f *fence) SvcUpdate(shard ShardKey, hostname registry.Hostname, namespace string, event registry.Event) {
	if f.open(shard, serviceName{hostname, namespace}, event == registry.EventDelete) {
		f.XDSUpdater.SvcUpdate(shard, hostname, namespace, event)
	}
}

// RemoveShard passes while the claim lasts.
func (f *fence) RemoveShard(shard ShardKey) {
	if f.empty(shard) {
		f.XDSUpdater.RemoveShard(shard)
	}
}

// empty notes that all services are gone, and reports whether they may be.
func (f *fence) empty(shard ShardKey) bool {
	if shard != f.shard {
		return true
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.closed {
		clear(f.written)
		clear(f.left)
	}
	return !f.closed
}

// PassesTo returns the updater: see ServiceHandler.
func (f *fence) PassesTo() []XDSUpdater { return []XDSUpdater{f.XDSUpdater} }

// UpdateBatch is that of the updater.
func (f *fence) UpdateBatch(publish func()) { UpdateBatch(f.XDSUpdater, publish) }
