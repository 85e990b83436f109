// SPDX-License-Identifier: Apache-2.0

package aggregate

import (
	"slices"
	"strings"
	"sync"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// fence is the claim of a shard of an updater that is no xdsupdate.ShardClaimer:
// it passes calls until it is closed. A call that is in progress then is not
// awaited; an updater that has to exclude it is a ShardClaimer.
type fence struct {
	xdsupdate.XDSUpdater
	shard xdsupdate.ShardKey

	mu     sync.Mutex
	closed bool
	// written are the services that have been written to under this claim, and
	// left those of predecessors that have not.
	written, left map[serviceName]struct{}
}

type serviceName struct {
	hostname  registry.Hostname
	namespace string
}

var _ xdsupdate.ShardUpdater = (*fence)(nil)

// newFence returns a claim that ends a former one, which may be nil.
func newFence(updater xdsupdate.XDSUpdater, shard xdsupdate.ShardKey, former *fence) *fence {
	f := &fence{XDSUpdater: updater, shard: shard, written: map[serviceName]struct{}{}, left: map[serviceName]struct{}{}}
	if former != nil {
		former.mu.Lock()
		defer former.mu.Unlock()
		former.closed = true
		for _, names := range []map[serviceName]struct{}{former.written, former.left} {
			for name := range names {
				f.left[name] = struct{}{}
			}
		}
	}
	return f
}

// open notes that a service is written to, or gone, and reports whether it may be.
func (f *fence) open(hostname registry.Hostname, namespace string, gone bool) bool {
	name := serviceName{hostname, namespace}
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

// Close ends the claim.
func (f *fence) Close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
}

// Prune empties the services that predecessors have written to and the holder
// has not.
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
		if c := strings.Compare(string(a.hostname), string(b.hostname)); c != 0 {
			return c
		}
		return strings.Compare(a.namespace, b.namespace)
	})
	for _, name := range names {
		f.XDSUpdater.EDSUpdate(f.shard, name.hostname, name.namespace, nil)
	}
}

// EDSUpdate passes while the claim lasts.
func (f *fence) EDSUpdate(shard xdsupdate.ShardKey, hostname registry.Hostname, namespace string, endpoints []*registry.Endpoint) {
	if f.open(hostname, namespace, false) {
		f.XDSUpdater.EDSUpdate(shard, hostname, namespace, endpoints)
	}
}

// EDSDeltaUpdate passes while the claim lasts. It is called only if the updater
// takes deltas.
func (f *fence) EDSDeltaUpdate(
	shard xdsupdate.ShardKey, hostname registry.Hostname, namespace string, changes []xdsupdate.EndpointChange,
) {
	if deltas, ok := xdsupdate.As[xdsupdate.EndpointDeltaUpdater](f.XDSUpdater); ok && f.open(hostname, namespace, false) {
		deltas.EDSDeltaUpdate(shard, hostname, namespace, changes)
	}
}

// EDSCacheUpdate passes while the claim lasts.
func (f *fence) EDSCacheUpdate(shard xdsupdate.ShardKey, hostname registry.Hostname, namespace string, endpoints []*registry.Endpoint) {
	if f.open(hostname, namespace, false) {
		f.XDSUpdater.EDSCacheUpdate(shard, hostname, namespace, endpoints)
	}
}

// SvcUpdate passes while the claim lasts.
func (f *fence) SvcUpdate(shard xdsupdate.ShardKey, hostname registry.Hostname, namespace string, event registry.Event) {
	if f.open(hostname, namespace, event == registry.EventDelete) {
		f.XDSUpdater.SvcUpdate(shard, hostname, namespace, event)
	}
}

// RemoveShard passes while the claim lasts.
func (f *fence) RemoveShard(shard xdsupdate.ShardKey) {
	f.mu.Lock()
	closed := f.closed
	f.mu.Unlock()
	if !closed {
		f.XDSUpdater.RemoveShard(shard)
	}
}

// UpdateBatch is that of the updater.
func (f *fence) UpdateBatch(publish func()) { xdsupdate.UpdateBatch(f.XDSUpdater, publish) }
