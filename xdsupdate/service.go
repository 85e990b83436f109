// SPDX-License-Identifier: Apache-2.0

package xdsupdate

import (
	"slices"
	"sync"

	"github.com/pilotkit/pilotkit/registry"
)

// service is what writers of one key of the index share. What readers see is the
// last view, which the directory has; it is replaced as a whole, with mu held.
type service struct {
	mu sync.Mutex
	// view is the last view; nil before the first endpoints and after the key was
	// removed.
	view *ServiceEndpoints
	// counts are those of the endpoints that are there; view.accounts is what was
	// announced, and may hold more.
	counts accountCounts
	// stale: counts may differ from view.accounts.
	stale bool
	// mutual: an endpoint that took mutual TLS was added since the service was.
	mutual bool
	// foreign: an endpoint of another namespace was added since the service was.
	foreign bool
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

// on returns what the update does to a shard's endpoints. The first delta of an owner is the
// complete list, not a change of what its predecessor has left.
func (u update) on(before sequence, first bool) change {
	switch {
	case u.delta && first:
		return changeList(before, changeSome(sequence{}, u.changes).after.Slice())
	case u.delta:
		return changeSome(before, u.changes)
	default:
		return changeList(before, u.list)
	}
}

// write makes an update. It returns false if the service was removed.
func (s *service) write(d *directory, name serviceName, w writer, u update) (PushType, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.removed {
		return NoPush, false
	}
	push, before := NoPush, s.view
	if w.valid() {
		push = s.writeLocked(name, w, u)
	}
	switch {
	case s.view == nil:
		s.removeLocked(d, name)
	case s.view != before:
		d.publish(s.view)
	}
	return push, true
}

// writeLocked makes the next view, if the update changes it.
func (s *service) writeLocked(name serviceName, w writer, u update) PushType {
	next := shardEndpoints{shard: w.shard, by: w.right}
	view := s.view
	i, found := view.find(w.shard.key)
	var before shardEndpoints
	if found {
		before, view.shards[i].by = *view.shards[i], w.right
	}
	c := u.on(before.endpoints, w.right.succeeds(before.by))
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
	s.foreign = s.foreign || slices.ContainsFunc(c.added, name.isForeign)
	push, accounts := s.judgeLocked(view, &c)
	if !c.same || push == FullPush {
		next.endpoints = c.after
		s.replaceLocked(name, i, found, next, accounts)
	}
	return push
}

// isForeign reports whether the workload of an endpoint is in another namespace than the service.
func (n serviceName) isForeign(e *registry.Endpoint) bool {
	namespace := e.Attributes().Namespace
	return namespace != "" && namespace != n.namespace
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

// replaceLocked makes the view with a shard's new state, at or in place of shard i of
// the one before. A service or shard is created by its first endpoint.
func (s *service) replaceLocked(name serviceName, i int, found bool, e shardEndpoints, accounts []string) {
	if !found && e.endpoints.Len() == 0 {
		return
	}
	next := newView(name, s)
	next.accounts, next.mutual, next.foreign = accounts, s.mutual, s.foreign
	switch {
	case s.view == nil:
		next.shards = []*shardEndpoints{&e}
	case found:
		next.shards = slices.Clone(s.view.shards)
		next.shards[i] = &e
	default:
		next.shards = slices.Concat(s.view.shards[:i], []*shardEndpoints{&e}, s.view.shards[i:])
	}
	s.view = next
}

// removeShard removes a shard with all that is remembered of it, and the service
// if no endpoint is left. It reports whether endpoints were removed. With written,
// it does so only if the shard is known, and was last written by such a right; without,
// it also removes a service that only other shards, which have no endpoints, are
// remembered of.
func (s *service) removeShard(d *directory, name serviceName, w writer, written func(by right) bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.removed || !w.valid() {
		return false
	}
	view := s.view
	i, found := view.find(w.shard.key)
	var gone shardEndpoints
	if found {
		gone = *view.shards[i]
	}
	if written != nil && (!found || !written(gone.by)) {
		return false
	}
	if gone.endpoints.Len() == view.Len() {
		s.removeLocked(d, name)
		return gone.endpoints.Len() > 0
	}
	if !found {
		return false
	}
	for e := range gone.endpoints.All() {
		s.counts.add(e.Attributes().ServiceAccount, -1)
	}
	next := newView(name, s)
	next.shards, next.accounts, next.mutual, next.foreign = slices.Delete(slices.Clone(view.shards), i, i+1), view.accounts, s.mutual, s.foreign
	if s.stale = false; !s.counts.is(next.accounts) {
		next.accounts = s.counts.sorted()
	}
	s.view = next
	d.publish(next)
	return gone.endpoints.Len() > 0
}

// removeLocked takes the service out of the directory while none can write to
// it, so that no write is lost: a writer that found it before looks again.
func (s *service) removeLocked(d *directory, name serviceName) {
	s.removed = true
	s.view = nil
	d.remove(name)
}
