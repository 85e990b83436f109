// SPDX-License-Identifier: Apache-2.0

package aggregate

import (
	"maps"
	"slices"
	"sync"

	"go.uber.org/atomic"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// leases are the rights of registries to write to their shards. A shard belongs
// to the youngest lease under which it was written to: what the holder of an
// older one still sends is dropped, and so is what a registry sends after it was
// deleted or replaced.
type leases struct {
	// mu makes taking a shard over one step.
	mu sync.Mutex
	// updater is what the registries write to; nil is nothing. It does not change
	// any more once a registry was made with it.
	updater xdsupdate.XDSUpdater
	claimer xdsupdate.ShardClaimer
	used    bool
	// readers is those updaters that were attached, which read the services; nil if
	// there are none.
	readers xdsupdate.XDSUpdater
	// youngest is the age of the youngest lease.
	youngest uint64
	holders  map[xdsupdate.ShardKey]*lease
	// call calls an updater for a shard, and keeps what it panics with.
	call func(shard xdsupdate.ShardKey, f func())
}

// lease is the updater of one registry. It takes a shard over when the registry
// first calls it for that shard, because only then it is known which it is.
type lease struct {
	leases *leases
	age    uint64
	// claims are the shards that were taken over. The map is replaced, never
	// changed.
	claims atomic.Pointer[map[xdsupdate.ShardKey]xdsupdate.ShardUpdater]
	closed atomic.Bool
}

// deltaLease is a lease for an updater that takes deltas.
type deltaLease struct{ *lease }

var (
	_ xdsupdate.XDSUpdater           = (*lease)(nil)
	_ xdsupdate.BatchUpdater         = (*lease)(nil)
	_ xdsupdate.EndpointDeltaUpdater = deltaLease{}
)

// issue returns a lease, and the updater for the registry that is made with it.
func (l *leases) issue() (*lease, xdsupdate.XDSUpdater) {
	out := l.next(true)
	if out == nil {
		return nil, xdsupdate.Discard{}
	}
	if _, ok := xdsupdate.As[xdsupdate.EndpointDeltaUpdater](l.updater); ok {
		return out, deltaLease{out}
	}
	return out, out
}

// next returns the next lease; nil without an updater.
func (l *leases) next(used bool) *lease {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.used = l.used || used
	if l.updater == nil {
		return nil
	}
	l.youngest++
	out := &lease{leases: l, age: l.youngest}
	out.claims.Store(&map[xdsupdate.ShardKey]xdsupdate.ShardUpdater{})
	return out
}

// attach adds an updater.
func (l *leases) attach(updater xdsupdate.XDSUpdater) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.used {
		panic("aggregate: an updater is attached after a registry was made without it")
	}
	l.readers = both(l.readers, updater)
	l.write(both(l.updater, updater))
}

// write sets what the registries write to; nil is nothing.
func (l *leases) write(updater xdsupdate.XDSUpdater) {
	if updater == nil {
		return
	}
	claimer, ok := xdsupdate.As[xdsupdate.ShardClaimer](updater)
	if !ok {
		claimer = xdsupdate.Multi(updater).(xdsupdate.ShardClaimer)
	}
	l.updater, l.claimer = updater, claimer
}

// both returns two updaters as one; the first may be nil.
func both(a, b xdsupdate.XDSUpdater) xdsupdate.XDSUpdater {
	if a == nil {
		return b
	}
	return xdsupdate.Multi(a, b)
}

// pushesTo returns the updater that push asks, or nil.
func (l *leases) pushesTo() xdsupdate.XDSUpdater {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.readers
}

// push asks the readers for a push.
func (l *leases) push(req *xdsupdate.PushRequest) {
	if readers := l.pushesTo(); readers != nil {
		readers.ConfigUpdate(req)
	}
}

// remove takes shards from those who write to them, and removes them.
func (l *leases) remove(shards []xdsupdate.ShardKey) {
	taker := l.next(false)
	if taker == nil {
		return
	}
	for _, shard := range shards {
		l.call(shard, func() {
			if claim := taker.claim(shard); claim != nil {
				claim.RemoveShard(shard)
			}
		})
	}
	taker.close()
}

// claim returns the updater for a shard; nil if it belongs to a younger lease, or
// the lease has ended.
func (l *lease) claim(shard xdsupdate.ShardKey) xdsupdate.ShardUpdater {
	if claim, ok := (*l.claims.Load())[shard]; ok {
		return claim
	}
	l.leases.mu.Lock()
	defer l.leases.mu.Unlock()
	holder := l.leases.holders[shard]
	switch {
	case l.closed.Load() || holder != nil && holder.age > l.age:
		return nil
	case (*l.claims.Load())[shard] != nil:
		return (*l.claims.Load())[shard]
	}
	claims := maps.Clone(*l.claims.Load())
	claims[shard] = l.leases.claimer.Claim(shard)
	l.claims.Store(&claims)
	l.leases.holders[shard] = l
	return claims[shard]
}

// shards returns the shards that were taken over.
func (l *lease) shards() []xdsupdate.ShardKey {
	if l == nil {
		return nil
	}
	return slices.Collect(maps.Keys(*l.claims.Load()))
}

// prune removes what predecessors left in the lease's shards, and in the given
// one.
func (l *lease) prune(shard xdsupdate.ShardKey) {
	l.leases.call(shard, func() { l.claim(shard) })
	for shard, claim := range *l.claims.Load() {
		l.leases.call(shard, claim.Prune)
	}
}

// close ends the lease. The endpoints stay.
func (l *lease) close() {
	if l == nil {
		return
	}
	l.leases.mu.Lock()
	l.closed.Store(true)
	claims := *l.claims.Load() // there will be no more
	for shard := range claims {
		if l.leases.holders[shard] == l {
			delete(l.leases.holders, shard)
		}
	}
	l.leases.mu.Unlock()
	for shard, claim := range claims { // with no lock held: a panic is logged
		l.leases.call(shard, claim.Close)
	}
}

// EDSUpdate passes what is for a shard of the lease.
func (l *lease) EDSUpdate(shard xdsupdate.ShardKey, hostname registry.Hostname, namespace string, endpoints []*registry.Endpoint) {
	if claim := l.claim(shard); claim != nil {
		claim.EDSUpdate(shard, hostname, namespace, endpoints)
	}
}

// EDSDeltaUpdate passes what is for a shard of the lease.
func (l deltaLease) EDSDeltaUpdate(
	shard xdsupdate.ShardKey, hostname registry.Hostname, namespace string, changes []xdsupdate.EndpointChange,
) {
	if claim := l.claim(shard); claim != nil {
		claim.EDSDeltaUpdate(shard, hostname, namespace, changes)
	}
}

// EDSCacheUpdate passes what is for a shard of the lease.
func (l *lease) EDSCacheUpdate(shard xdsupdate.ShardKey, hostname registry.Hostname, namespace string, endpoints []*registry.Endpoint) {
	if claim := l.claim(shard); claim != nil {
		claim.EDSCacheUpdate(shard, hostname, namespace, endpoints)
	}
}

// SvcUpdate passes what is for a shard of the lease.
func (l *lease) SvcUpdate(shard xdsupdate.ShardKey, hostname registry.Hostname, namespace string, event registry.Event) {
	if claim := l.claim(shard); claim != nil {
		claim.SvcUpdate(shard, hostname, namespace, event)
	}
}

// RemoveShard passes what is for a shard of the lease.
func (l *lease) RemoveShard(shard xdsupdate.ShardKey) {
	if claim := l.claim(shard); claim != nil {
		claim.RemoveShard(shard)
	}
}

// PassesTo returns the updater: see xdsupdate.ServiceHandler.
func (l *lease) PassesTo() []xdsupdate.XDSUpdater { return []xdsupdate.XDSUpdater{l.leases.updater} }

// ConfigUpdate passes until the lease ends.
func (l *lease) ConfigUpdate(req *xdsupdate.PushRequest) {
	if !l.closed.Load() {
		l.leases.updater.ConfigUpdate(req)
	}
}

// ProxyUpdate passes until the lease ends.
func (l *lease) ProxyUpdate(cluster registry.ClusterID, ip string) {
	if !l.closed.Load() {
		l.leases.updater.ProxyUpdate(cluster, ip)
	}
}

// UpdateBatch is that of the updater.
func (l *lease) UpdateBatch(publish func()) { xdsupdate.UpdateBatch(l.leases.updater, publish) }
