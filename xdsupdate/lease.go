// SPDX-License-Identifier: Apache-2.0

package xdsupdate

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	"go.uber.org/atomic"

	"github.com/pilotkit/pilotkit/registry"
)

// lease is the right of an owner to write to one shard. It ends with Close of the
// owner, and when another one takes the shard over.
type lease struct {
	owner *owner
	shard ShardKey
	ended atomic.Bool // changed with mu held

	// mu is never held while an updater is called; an updater may hold its own locks
	// when it asks for a right.
	mu sync.Mutex
	// written are the services that the owner has written to; left those that its
	// predecessors have, and the owner has not. Both may have some of which nothing is
	// there: what matters is that no service with endpoints is missing.
	written, left map[serviceName]struct{}
}

var _ right = (*lease)(nil)

// holds reports whether the lease has not ended.
func (l *lease) holds() bool { return !l.ended.Load() }

// begin notes what a call is about to do. It reports whether the call may be made. The
// first delta for a service that predecessors have written to becomes the complete list
// that it is.
func (l *lease) begin(c *shardCall) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended.Load() {
		return false
	}
	switch c.kind {
	case callEDSDeltaUpdate:
		if len(c.changes) == 0 {
			return false
		}
		if _, first := l.left[c.name]; first {
			c.kind, c.list = callEDSUpdate, changeSome(sequence{}, c.changes).after.Slice()
		}
	case callEDSUpdate, callEDSCacheUpdate:
	default:
		return true
	}
	if len(l.left) > 0 {
		delete(l.left, c.name)
	}
	if _, again := l.written[c.name]; !again {
		l.written[c.name] = struct{}{}
	}
	return true
}

// done notes what a call has done. Nothing is noted of a call that removes before it has
// been made, nor if the lease has ended meanwhile: it may have been refused, and then the
// successor has to know of what is there.
func (l *lease) done(c *shardCall) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.ended.Load():
	case c.kind == callRemoveShard:
		clear(l.written)
		clear(l.left)
	case c.kind == callSvcUpdate && c.event == registry.EventDelete:
		delete(l.written, c.name)
		delete(l.left, c.name)
	}
}

// pruned notes that what predecessors have left of a service is gone.
func (l *lease) pruned(name serviceName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.ended.Load() {
		delete(l.left, name)
	}
}

// empty reports whether no service has been written to.
func (l *lease) empty() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.written)+len(l.left) == 0
}

// end ends the lease.
func (l *lease) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended.Store(true)
}

// inherit returns the services that have been written to. The lease has ended.
func (l *lease) inherit() map[serviceName]struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	into, from := l.written, l.left
	if len(into) < len(from) {
		into, from = from, into
	}
	maps.Copy(into, from)
	l.written, l.left = nil, nil
	return into
}

// outdated returns the services that predecessors have written to, and the owner has
// not, sorted.
func (l *lease) outdated() []serviceName {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.SortedFunc(maps.Keys(l.left), func(a, b serviceName) int {
		return cmp.Or(cmp.Compare(a.hostname, b.hostname), cmp.Compare(a.namespace, b.namespace))
	})
}

// pruning is the right to remove what predecessors have left of a service. It ends when
// the owner writes to the service.
type pruning struct {
	*lease
	name serviceName
}

func (p pruning) holds() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, left := p.left[p.name]
	return left && !p.ended.Load()
}
