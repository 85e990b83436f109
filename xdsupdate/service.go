// SPDX-License-Identifier: Apache-2.0

package xdsupdate

import (
	"slices"
	"sync"

	"go.uber.org/atomic"

	"github.com/pilotkit/pilotkit/internal/pmap"
	"github.com/pilotkit/pilotkit/registry"
)

// service is one key of the index. What readers see is in view; it is replaced
// as a whole, with mu held.
type service struct {
	// Entry is that of the directory: Key is the name, Value the service itself.
	pmap.Entry[serviceName, *service]
	// view is nil only before the first write has ended and after the key was
	// removed; both with mu held.
	view atomic.Pointer[ServiceEndpoints]

	mu sync.Mutex
	// counts are those of the endpoints that are there; view.accounts is what was
	// announced, and may hold more.
	counts accountCounts
	// stale: counts may differ from view.accounts.
	stale bool
	// mutual: an endpoint that took mutual TLS was added since the service was.
	mutual bool
	// removed: the service is no longer in the directory, look there again.
	removed bool
}

// tlsModeIstio is the TLS mode of endpoints that take mutual TLS of the mesh.
const tlsModeIstio = "istio"

// update replaces a shard's endpoints, or some of them.
type update struct {
	list    []*registry.Endpoint
	changes []EndpointChange
	delta   bool
}

// empty reports whether nothing is there if nothing was.
func (u update) empty() bool {
	if !u.delta {
		return len(u.list) == 0
	}
	return !slices.ContainsFunc(u.changes, func(r EndpointChange) bool { return r.New != nil })
}

// on returns what the update does to a shard's endpoints; fresh: they are those
// of a predecessor, which the changes are not about.
func (u update) on(before sequence, fresh bool) change {
	switch {
	case !u.delta:
		return changeList(before, u.list)
	case fresh:
		return changeList(before, changeSome(sequence{}, u.changes).after.Slice())
	default:
		return changeSome(before, u.changes)
	}
}

// write makes an update. It returns false if the service was removed.
func (s *service) write(d *directory, w writer, u update) (PushType, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.removed {
		return NoPush, false
	}
	view := s.view.Load()
	push := NoPush
	if generation, ok := w.generationNow(); ok {
		w.generation = generation
		push = s.writeLocked(view, w, u)
	}
	if s.view.Load() == nil {
		s.removeLocked(d)
	}
	return push, true
}

func (s *service) writeLocked(view *ServiceEndpoints, w writer, u update) PushType {
	next := shardEndpoints{shard: w.shard, generation: w.generation}
	i, found := view.find(w.shard.key)
	before := next
	if found {
		before = *view.shards[i]
	}
	c := u.on(before.endpoints, w.claimed && before.generation != w.generation)
	// The added come first: a change may add what it removes again, and no count
	// may become negative.
	for _, e := range c.added {
		s.stale = s.counts.add(e.Attributes().ServiceAccount, 1) || s.stale
	}
	for _, e := range c.removed {
		s.stale = s.counts.add(e.Attributes().ServiceAccount, -1) || s.stale
	}
	// Without such endpoints before, those that are removed were added by the same change.
	s.mutual = s.mutual || takingMutualTLS(c.added) > takingMutualTLS(c.removed)
	push, accounts := s.judgeLocked(view, &c)
	if !c.same || before.generation != w.generation || push == FullPush {
		next.endpoints = c.after
		s.publishLocked(view, i, found, next, accounts)
	}
	return push
}

// takingMutualTLS counts endpoints that take mutual TLS of the mesh.
func takingMutualTLS(endpoints []*registry.Endpoint) int {
	n := 0
	for _, e := range endpoints {
		if e.Attributes().TLSMode == tlsModeIstio {
			n++
		}
	}
	return n
}

// judgeLocked returns the outcome of a change and the accounts to announce. An
// empty list leaves the accounts alone, so that a service whose only workload
// comes and goes is not pushed in full each time.
func (s *service) judgeLocked(view *ServiceEndpoints, c *change) (PushType, []string) {
	accounts := view.ServiceAccounts()
	if c.after.Len() == 0 {
		return IncrementalPush, accounts
	}
	push := NoPush
	if c.pushes() {
		push = IncrementalPush
	}
	if s.stale {
		s.stale = false
		if !s.counts.is(accounts) {
			accounts, push = s.counts.sorted(), FullPush
		}
	}
	if view == nil {
		push = FullPush
	}
	return push, accounts
}

// publishLocked shows a shard's new state to readers. A service or shard is
// created by its first endpoint.
func (s *service) publishLocked(view *ServiceEndpoints, i int, found bool, e shardEndpoints, accounts []string) {
	if !found && e.endpoints.Len() == 0 {
		return
	}
	next := &ServiceEndpoints{service: s, accounts: accounts, mutual: s.mutual}
	switch {
	case view == nil:
		next.shards = []*shardEndpoints{&e}
	case found:
		next.shards = slices.Clone(view.shards)
		next.shards[i] = &e
	default:
		next.shards = slices.Concat(view.shards[:i], []*shardEndpoints{&e}, view.shards[i:])
	}
	s.view.Store(next)
}

// removeShard removes a shard with all that is remembered of it, and the service
// if no endpoint is left. It reports whether endpoints were removed. With where,
// it does so only if the shard is known and where holds; without, it also removes
// a service that only other shards, which have no endpoints, are remembered of.
func (s *service) removeShard(d *directory, w writer, where func(shardEndpoints) bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := w.generationNow(); !ok || s.removed {
		return false
	}
	view := s.view.Load()
	i, found := view.find(w.shard.key)
	var gone shardEndpoints
	if found {
		gone = *view.shards[i]
	}
	if where != nil && (!found || !where(gone)) {
		return false
	}
	if gone.endpoints.Len() == view.Len() {
		s.removeLocked(d)
		return gone.endpoints.Len() > 0
	}
	if !found {
		return false
	}
	for e := range gone.endpoints.All() {
		s.counts.add(e.Attributes().ServiceAccount, -1)
	}
	next := &ServiceEndpoints{
		service: s, shards: slices.Delete(slices.Clone(view.shards), i, i+1), accounts: view.accounts, mutual: s.mutual,
	}
	if s.stale = false; !s.counts.is(next.accounts) {
		next.accounts = s.counts.sorted()
	}
	s.view.Store(next)
	return gone.endpoints.Len() > 0
}

// removeLocked takes the service out of the directory while none can write to
// it, so that no write is lost: a writer that found it before looks again.
func (s *service) removeLocked(d *directory) {
	s.removed = true
	s.view.Store(nil)
	d.remove(s)
}
